// SPDX-License-Identifier: Apache-2.0
/* Which system call numbers do what to files: one row each, per call table of x86. */
#include "rec.h"

struct row {
	unsigned short nr;
	unsigned char call;
};

/* clang-format off */
static const struct row x86_64[] = {
	{0, TH_CALL_READ},
	{19, TH_CALL_READ}, /* readv */
	{1, TH_CALL_WRITE},
	{20, TH_CALL_WRITE}, /* writev */
	{17, TH_CALL_PREAD},
	{295, TH_CALL_PREAD}, /* preadv */
	{327, TH_CALL_PREAD}, /* preadv2 */
	{18, TH_CALL_PWRITE},
	{296, TH_CALL_PWRITE}, /* pwritev */
	{328, TH_CALL_PWRITE}, /* pwritev2 */
	{2, TH_CALL_OPEN},
	{257, TH_CALL_OPENAT},
	{437, TH_CALL_OPENAT2},
	{85, TH_CALL_CREAT},
	{304, TH_CALL_OPEN_HANDLE},
	{3, TH_CALL_CLOSE},
	{33, TH_CALL_DUP2},
	{292, TH_CALL_DUP2}, /* dup3 */
	{436, TH_CALL_CLOSE_RANGE},
	{326, TH_CALL_COPY_RANGE},
	{40, TH_CALL_SENDFILE},
	{275, TH_CALL_SPLICE},
	{9, TH_CALL_MMAP},
	{25, TH_CALL_MREMAP},
	{77, TH_CALL_FTRUNCATE},
	{76, TH_CALL_TRUNCATE},
	{285, TH_CALL_FALLOCATE},
	{16, TH_CALL_IOCTL},
	{209, TH_CALL_IO_SUBMIT},
	{82, TH_CALL_RENAME},
	{264, TH_CALL_RENAMEAT},
	{316, TH_CALL_RENAMEAT2},
	{86, TH_CALL_LINK},
	{265, TH_CALL_LINKAT},
	{88, TH_CALL_SYMLINK},
	{266, TH_CALL_SYMLINKAT},
	{87, TH_CALL_UNLINK},
	{263, TH_CALL_UNLINKAT},
	{83, TH_CALL_MKDIR},
	{258, TH_CALL_MKDIRAT},
	{84, TH_CALL_RMDIR},
	{4, TH_CALL_STAT},
	{6, TH_CALL_STAT}, /* lstat */
	{262, TH_CALL_STATAT},
	{332, TH_CALL_STATX},
	{78, TH_CALL_READDIR},
	{217, TH_CALL_READDIR},
	{90, TH_CALL_CHMOD},
	{91, TH_CALL_CHMOD}, /* fchmod */
	{268, TH_CALL_CHMOD}, /* fchmodat */
	{452, TH_CALL_CHMOD}, /* fchmodat2 */
	{188, TH_CALL_XATTR}, /* setxattr to fremovexattr */
	{189, TH_CALL_XATTR},
	{190, TH_CALL_XATTR},
	{191, TH_CALL_XATTR},
	{192, TH_CALL_XATTR},
	{193, TH_CALL_XATTR},
	{194, TH_CALL_XATTR},
	{195, TH_CALL_XATTR},
	{196, TH_CALL_XATTR},
	{197, TH_CALL_XATTR},
	{198, TH_CALL_XATTR},
	{199, TH_CALL_XATTR},
	{21, TH_CALL_ACCESS},
	{269, TH_CALL_ACCESS}, /* faccessat */
	{439, TH_CALL_ACCESS}, /* faccessat2 */
	{276, TH_CALL_TEE},
	{278, TH_CALL_VMSPLICE},
	{10, TH_CALL_MPROTECT},
	{329, TH_CALL_MPROTECT}, /* pkey_mprotect */
	{28, TH_CALL_MADVISE},
	{133, TH_CALL_MKNOD},
	{259, TH_CALL_MKNODAT},
	{216, TH_CALL_UNKNOWN}, /* remap_file_pages */
};

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
/* clang-format on */

static void fill(unsigned char *table, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		table[rows[i].nr] = rows[i].call;
}

void calls_fill(struct th_config *cfg)
{
	fill(cfg->calls, x86_64, sizeof(x86_64) / sizeof(*x86_64));
	fill(cfg->calls32, i386, sizeof(i386) / sizeof(*i386));
}
