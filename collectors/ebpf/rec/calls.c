// SPDX-License-Identifier: Apache-2.0
/* Effect of each system call on files: one row per call, by the processor's own numbers and by
 * those of its 32-bit programs. */
#include <asm/unistd.h>
#include <string.h>
#include "rec.h"

#ifndef __NR_fchmodat2 /* Linux 6.6 */
#define __NR_fchmodat2 452
#endif

struct row {
	unsigned short nr;
	unsigned char call;
};

/* clang-format off */
static const struct row native[] = {
	{__NR_read, TH_CALL_READ},
	{__NR_readv, TH_CALL_READ},
	{__NR_write, TH_CALL_WRITE},
	{__NR_writev, TH_CALL_WRITE},
	{__NR_pread64, TH_CALL_PREAD},
	{__NR_preadv, TH_CALL_PREAD},
	{__NR_preadv2, TH_CALL_PREAD},
	{__NR_pwrite64, TH_CALL_PWRITE},
	{__NR_pwritev, TH_CALL_PWRITE},
	{__NR_pwritev2, TH_CALL_PWRITE},
	{__NR_openat, TH_CALL_OPENAT},
	{__NR_openat2, TH_CALL_OPENAT2},
	{__NR_open_by_handle_at, TH_CALL_OPEN_HANDLE},
	{__NR_close, TH_CALL_CLOSE},
	{__NR_dup3, TH_CALL_DUP2},
	{__NR_close_range, TH_CALL_CLOSE_RANGE},
	{__NR_copy_file_range, TH_CALL_COPY_RANGE},
	{__NR_sendfile, TH_CALL_SENDFILE},
	{__NR_splice, TH_CALL_SPLICE},
	{__NR_mmap, TH_CALL_MMAP},
	{__NR_mremap, TH_CALL_MREMAP},
	{__NR_ftruncate, TH_CALL_FTRUNCATE},
	{__NR_truncate, TH_CALL_TRUNCATE},
	{__NR_fallocate, TH_CALL_FALLOCATE},
	{__NR_ioctl, TH_CALL_IOCTL},
	{__NR_io_submit, TH_CALL_IO_SUBMIT},
	{__NR_renameat, TH_CALL_RENAMEAT},
	{__NR_renameat2, TH_CALL_RENAMEAT2},
	{__NR_linkat, TH_CALL_LINKAT},
	{__NR_symlinkat, TH_CALL_SYMLINKAT},
	{__NR_unlinkat, TH_CALL_UNLINKAT},
	{__NR_mkdirat, TH_CALL_MKDIRAT},
	{__NR_newfstatat, TH_CALL_STATAT},
	{__NR_statx, TH_CALL_STATX},
	{__NR_getdents64, TH_CALL_READDIR},
	{__NR_fchmod, TH_CALL_CHMOD},
	{__NR_fchmodat, TH_CALL_CHMOD},
	{__NR_fchmodat2, TH_CALL_CHMOD},
	{__NR_setxattr, TH_CALL_XATTR},
	{__NR_lsetxattr, TH_CALL_XATTR},
	{__NR_fsetxattr, TH_CALL_XATTR},
	{__NR_getxattr, TH_CALL_XATTR},
	{__NR_lgetxattr, TH_CALL_XATTR},
	{__NR_fgetxattr, TH_CALL_XATTR},
	{__NR_listxattr, TH_CALL_XATTR},
	{__NR_llistxattr, TH_CALL_XATTR},
	{__NR_flistxattr, TH_CALL_XATTR},
	{__NR_removexattr, TH_CALL_XATTR},
	{__NR_lremovexattr, TH_CALL_XATTR},
	{__NR_fremovexattr, TH_CALL_XATTR},
	{__NR_faccessat, TH_CALL_ACCESS},
	{__NR_faccessat2, TH_CALL_ACCESS},
	{__NR_tee, TH_CALL_TEE},
	{__NR_vmsplice, TH_CALL_VMSPLICE},
	{__NR_mprotect, TH_CALL_MPROTECT},
	{__NR_pkey_mprotect, TH_CALL_MPROTECT},
	{__NR_madvise, TH_CALL_MADVISE},
	{__NR_mknodat, TH_CALL_MKNODAT},
	{__NR_remap_file_pages, TH_CALL_UNKNOWN},
#ifdef __x86_64__ /* calls that newer processors lack */
	{__NR_open, TH_CALL_OPEN},
	{__NR_creat, TH_CALL_CREAT},
	{__NR_dup2, TH_CALL_DUP2},
	{__NR_rename, TH_CALL_RENAME},
	{__NR_link, TH_CALL_LINK},
	{__NR_symlink, TH_CALL_SYMLINK},
	{__NR_unlink, TH_CALL_UNLINK},
	{__NR_mkdir, TH_CALL_MKDIR},
	{__NR_rmdir, TH_CALL_RMDIR},
	{__NR_stat, TH_CALL_STAT},
	{__NR_lstat, TH_CALL_STAT},
	{__NR_getdents, TH_CALL_READDIR},
	{__NR_chmod, TH_CALL_CHMOD},
	{__NR_access, TH_CALL_ACCESS},
	{__NR_mknod, TH_CALL_MKNOD},
#endif
};

#ifdef __x86_64__
static const struct row i386[] = {
	{3, TH_CALL_READ},
	{145, TH_CALL_READ}, /* readv */
	{4, TH_CALL_WRITE},
	{146, TH_CALL_WRITE}, /* writev */
	{180, TH_CALL_PREAD_SPLIT},
	{333, TH_CALL_PREAD_SPLIT}, /* preadv */
	{378, TH_CALL_PREAD_SPLIT}, /* preadv2 */
	{181, TH_CALL_PWRITE_SPLIT},
	{334, TH_CALL_PWRITE_SPLIT},
	{379, TH_CALL_PWRITE_SPLIT},
	{5, TH_CALL_OPEN},
	{295, TH_CALL_OPENAT},
	{437, TH_CALL_OPENAT2},
	{8, TH_CALL_CREAT},
	{342, TH_CALL_OPEN_HANDLE},
	{6, TH_CALL_CLOSE},
	{63, TH_CALL_DUP2},
	{330, TH_CALL_DUP2},
	{436, TH_CALL_CLOSE_RANGE},
	{377, TH_CALL_COPY_RANGE},
	{239, TH_CALL_SENDFILE}, /* sendfile64 */
	{313, TH_CALL_SPLICE},
	{192, TH_CALL_MMAP_PAGES}, /* mmap2 */
	{163, TH_CALL_MREMAP},
	{93, TH_CALL_FTRUNCATE},
	{194, TH_CALL_FTRUNCATE_SPLIT},
	{92, TH_CALL_TRUNCATE},
	{193, TH_CALL_TRUNCATE_SPLIT},
	{324, TH_CALL_FALLOCATE_SPLIT},
	{38, TH_CALL_RENAME},
	{302, TH_CALL_RENAMEAT},
	{353, TH_CALL_RENAMEAT2},
	{9, TH_CALL_LINK},
	{303, TH_CALL_LINKAT},
	{83, TH_CALL_SYMLINK},
	{304, TH_CALL_SYMLINKAT},
	{10, TH_CALL_UNLINK},
	{301, TH_CALL_UNLINKAT},
	{39, TH_CALL_MKDIR},
	{296, TH_CALL_MKDIRAT},
	{40, TH_CALL_RMDIR},
	{195, TH_CALL_STAT},
	{196, TH_CALL_STAT},
	{106, TH_CALL_STAT},
	{107, TH_CALL_STAT},
	{300, TH_CALL_STATAT}, /* fstatat64 */
	{383, TH_CALL_STATX},
	{141, TH_CALL_READDIR},
	{220, TH_CALL_READDIR},
	{15, TH_CALL_CHMOD},
	{94, TH_CALL_CHMOD},
	{306, TH_CALL_CHMOD},
	{33, TH_CALL_ACCESS},
	{307, TH_CALL_ACCESS},
	{439, TH_CALL_ACCESS},
	{315, TH_CALL_TEE},
	{316, TH_CALL_VMSPLICE},
	{125, TH_CALL_MPROTECT},
	{380, TH_CALL_MPROTECT},
	{219, TH_CALL_MADVISE},
	{14, TH_CALL_MKNOD},
	{297, TH_CALL_MKNODAT},
	{257, TH_CALL_UNKNOWN}, /* remap_file_pages */
	{187, TH_CALL_UNKNOWN}, /* sendfile with a 32-bit offset */
	{248, TH_CALL_UNKNOWN}, /* io_submit with 32-bit pointers */
};
#endif
/* clang-format on */

static void fill(unsigned char *table, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		table[rows[i].nr] = rows[i].call;
}

void calls_fill(struct th_config *cfg)
{
	fill(cfg->calls, native, sizeof(native) / sizeof(*native));
#ifdef __x86_64__
	fill(cfg->calls32, i386, sizeof(i386) / sizeof(*i386));
#else
	memset(cfg->calls32, TH_CALL_UNKNOWN, sizeof(cfg->calls32)); /* counted, not followed */
#endif
}
