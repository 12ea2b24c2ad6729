// SPDX-License-Identifier: Apache-2.0
/* What each system call does to files, one row each, and the recorder's line in observers.c. */
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include "record.h"

#define AT_EMPTY_PATH 0x1000
#define AT_REMOVEDIR 0x200
#define CLOSE_RANGE_CLOEXEC 4
#define RENAME_EXCHANGE_FLAG 2
#define PR_SET_SECCOMP_MODE 22

typedef void handler(struct rec *rec, const struct th_call *c);

static void meta(struct rec *rec, enum th_meta kind, const struct th_call *c)
{
	struct th_process *proc = &rec->page->proc;

	__atomic_fetch_add(&proc->meta[kind], 1, __ATOMIC_RELAXED);
	if (th_failed(c->ret))
		__atomic_fetch_add(&proc->meta_errors[kind], 1, __ATOMIC_RELAXED);
}

static void unknown(struct rec *rec, const struct th_call *c)
{
	rec->page->proc.unknown_call = (unsigned int)c->nr;
	lose(rec, TH_LOST_UNKNOWN_CALL, 1);
}

static void do_read(struct rec *rec, const struct th_call *c)
{
	if (c->ret > 0)
		moved(rec, c->arg[0], TH_OP(TH_READ, TH_HOW_READ, 0), -1, (unsigned long)c->ret);
}

static void do_write(struct rec *rec, const struct th_call *c)
{
	if (c->ret > 0)
		moved(rec, c->arg[0], TH_OP(TH_WRITE, TH_HOW_WRITE, 0), -1, (unsigned long)c->ret);
}

static void do_pread(struct rec *rec, const struct th_call *c)
{
	if (c->ret > 0)
		moved(rec, c->arg[0], TH_OP(TH_READ, TH_HOW_READ, 0), c->arg[3],
		      (unsigned long)c->ret);
}

/* With O_APPEND a positioned write goes to the end, whatever was asked for. */
static void do_pwrite(struct rec *rec, const struct th_call *c)
{
	unsigned int flags = c->nr == __NR_pwritev2 ? (unsigned int)c->arg[5] : 0;
	struct slot *slot = c->ret > 0 ? slot_use(rec, c->arg[0]) : NULL;
	long long at = c->arg[3];
	struct statx facts;

	if (!slot)
		return;
	if (at >= 0 && !(flags & 32 /* RWF_NOAPPEND */) && ((flags & RWF_APPEND) || slot->append) &&
	    !th_failed(th_sys(__NR_statx, c->arg[0], "", AT_EMPTY_PATH, STATX_SIZE, &facts)))
		at = (long long)facts.stx_size - c->ret;
	moved(rec, c->arg[0], TH_OP(TH_WRITE, TH_HOW_WRITE, 0), at, (unsigned long)c->ret);
}

struct open_args {
	long dir;
	const char *path;
	unsigned long flags;
};

static struct open_args open_args(const struct th_call *c)
{
	switch (c->nr) {
	case __NR_open:
		return (struct open_args){TH_AT_FDCWD, (const char *)c->arg[0],
					  (unsigned int)c->arg[1]};
	case __NR_creat:
		return (struct open_args){TH_AT_FDCWD, (const char *)c->arg[0],
					  O_CREAT | O_TRUNC | O_WRONLY};
	case __NR_openat2:
		return (struct open_args){(int)c->arg[0], (const char *)c->arg[1],
					  c->arg[2] > 4095 ? ((struct open_how *)c->arg[2])->flags
							   : 0};
	}
	return (struct open_args){(int)c->arg[0], (const char *)c->arg[1], (unsigned int)c->arg[2]};
}

/* Whether an open that may create a file did so: it was not there before. */
static void before_open(struct rec *rec, struct th_call *c)
{
	struct open_args args = open_args(c);
	struct statx facts;

	(void)rec;
	if ((args.flags & (O_CREAT | O_EXCL)) == O_CREAT)
		c->note = th_sys(__NR_statx, args.dir, args.path, 0, STATX_TYPE, &facts) == -2;
	else
		c->note = (args.flags & O_CREAT) || (args.flags & __O_TMPFILE);
}

static void do_open(struct rec *rec, const struct th_call *c)
{
	if (th_failed(c->ret)) {
		meta(rec, TH_META_FAILED_OPEN, c);
		return;
	}
	struct open_args args = open_args(c);
	bool ask = (args.flags & __O_TMPFILE) == __O_TMPFILE || path_is_own(args.path);
	unsigned int path = ask ? 0 : path_at(rec, args.dir, args.path);

	slot_opened(rec, c->ret, path, args.flags, c->note);
}

static void before_close(struct rec *rec, struct th_call *c)
{
	slot_settle(rec, (int)c->arg[0]);
}

static void do_close(struct rec *rec, const struct th_call *c)
{
	if (!c->ret || c->ret == -4)
		slot_closed(rec, (int)c->arg[0]);
}

static void before_dup2(struct rec *rec, struct th_call *c)
{
	if (c->arg[0] != c->arg[1])
		slot_settle(rec, (int)c->arg[1]);
}

static void shared(struct rec *rec, long fd)
{
	struct slot *slot = slot_at(rec, fd);

	if (slot)
		slot->shared = 1;
}

static void do_dup(struct rec *rec, const struct th_call *c)
{
	if (th_failed(c->ret) || c->ret == (int)c->arg[0])
		return;
	shared(rec, (int)c->arg[0]);
	slot_closed(rec, c->ret);
}

static void do_fcntl(struct rec *rec, const struct th_call *c)
{
	struct slot *slot = slot_at(rec, (int)c->arg[0]);

	if (c->arg[1] == F_DUPFD || c->arg[1] == F_DUPFD_CLOEXEC)
		do_dup(rec, c);
	else if (c->arg[1] == F_SETFL && !c->ret && slot)
		slot->append = !!(c->arg[2] & O_APPEND);
}

static void before_close_range(struct rec *rec, struct th_call *c)
{
	for (unsigned long fd = (unsigned int)c->arg[0];
	     fd <= (unsigned int)c->arg[1] && fd < rec->top; fd++)
		slot_settle(rec, (long)fd);
}

static void do_close_range(struct rec *rec, const struct th_call *c)
{
	if (c->ret || (c->arg[2] & CLOSE_RANGE_CLOEXEC))
		return;
	for (unsigned long fd = (unsigned int)c->arg[0];
	     fd <= (unsigned int)c->arg[1] && fd < rec->top; fd++)
		slot_closed(rec, (long)fd);
}

static void do_lseek(struct rec *rec, const struct th_call *c)
{
	struct slot *slot = slot_at(rec, (int)c->arg[0]);

	if (!th_failed(c->ret) && slot && slot->kind == SLOT_FILE)
		slot->pos = c->ret;
}

/* Where a call left its offset argument; without one, the file position (-1). */
static long long began_at(long offset, long n)
{
	return offset ? *(const long long *)offset - n : -1;
}

static void do_copy(struct rec *rec, const struct th_call *c)
{
	unsigned int how = c->nr == __NR_splice ? TH_HOW_SPLICE : TH_HOW_COPY;

	if (c->ret <= 0)
		return;
	moved(rec, c->arg[0], TH_OP(TH_READ, how, 0), began_at(c->arg[1], c->ret),
	      (unsigned long)c->ret);
	moved(rec, c->arg[2], TH_OP(TH_WRITE, how, 0), began_at(c->arg[3], c->ret),
	      (unsigned long)c->ret);
}

static void do_sendfile(struct rec *rec, const struct th_call *c)
{
	if (c->ret <= 0)
		return;
	moved(rec, c->arg[1], TH_OP(TH_READ, TH_HOW_SENDFILE, 0), began_at(c->arg[2], c->ret),
	      (unsigned long)c->ret);
	moved(rec, c->arg[0], TH_OP(TH_WRITE, TH_HOW_SENDFILE, 0), -1, (unsigned long)c->ret);
}

static void do_tee(struct rec *rec, const struct th_call *c)
{
	if (c->ret <= 0)
		return;
	moved(rec, c->arg[0], TH_OP(TH_READ, TH_HOW_SPLICE, 0), -1, (unsigned long)c->ret);
	moved(rec, c->arg[1], TH_OP(TH_WRITE, TH_HOW_SPLICE, 0), -1, (unsigned long)c->ret);
}

static void do_vmsplice(struct rec *rec, const struct th_call *c)
{
	long flags = c->ret > 0 ? th_sys(__NR_fcntl, c->arg[0], F_GETFL) : -1;

	if (flags >= 0)
		moved(rec, c->arg[0],
		      TH_OP(flags & O_ACCMODE ? TH_WRITE : TH_READ, TH_HOW_SPLICE, 0), -1,
		      (unsigned long)c->ret);
}

static void do_ftruncate(struct rec *rec, const struct th_call *c)
{
	if (!c->ret)
		touched(rec, (int)c->arg[0], TH_OP(TH_TRUNCATE, TH_HOW_TRUNCATE, 0),
			(unsigned long)c->arg[1], 0);
}

/* All that lies behind is copied to another place within the file. */
static void shifted(struct rec *rec, const struct th_call *c, bool inserted)
{
	unsigned long long offset = (unsigned long)c->arg[2], len = (unsigned long)c->arg[3];
	unsigned long long from = inserted ? offset : offset + len;
	unsigned long long to = inserted ? offset + len : offset;
	struct statx facts;

	if (th_failed(th_sys(__NR_statx, (int)c->arg[0], "", AT_EMPTY_PATH, STATX_SIZE, &facts)) ||
	    facts.stx_size <= to)
		return;
	touched(rec, (int)c->arg[0], TH_OP(TH_READ, TH_HOW_FALLOCATE, 0), from,
		facts.stx_size - to);
	touched(rec, (int)c->arg[0], TH_OP(TH_WRITE, TH_HOW_FALLOCATE, 0), to, facts.stx_size - to);
	if (inserted)
		touched(rec, (int)c->arg[0], TH_OP(TH_DEALLOCATE, TH_HOW_FALLOCATE, 0), offset,
			len);
}

static void do_fallocate(struct rec *rec, const struct th_call *c)
{
	unsigned int mode = (unsigned int)c->arg[1];
	unsigned long long offset = (unsigned long)c->arg[2], len = (unsigned long)c->arg[3];

	if (c->ret)
		return;
	if (mode & 2 /* PUNCH_HOLE */)
		touched(rec, (int)c->arg[0], TH_OP(TH_DEALLOCATE, TH_HOW_FALLOCATE, 0), offset,
			len);
	else if (mode & (8 | 32) /* COLLAPSE_RANGE, INSERT_RANGE */)
		shifted(rec, c, mode & 32);
	else if (mode & 16 /* ZERO_RANGE */)
		touched(rec, (int)c->arg[0], TH_OP(TH_WRITE, TH_HOW_FALLOCATE, 0), offset, len);
	/* other modes reserve space and change no byte */
}

static void do_ioctl(struct rec *rec, const struct th_call *c)
{
	unsigned int command = (unsigned int)c->arg[1];
	struct file_clone_range range = {.src_fd = (int)c->arg[2]};
	struct statx facts;

	if (c->ret || (command != FICLONE && command != FICLONERANGE))
		return;
	if (command == FICLONERANGE)
		th_copy(&range, (const void *)c->arg[2], sizeof(range));
	if (!range.src_length && !th_failed(th_sys(__NR_statx, (int)range.src_fd, "", AT_EMPTY_PATH,
						   STATX_SIZE, &facts)))
		range.src_length = facts.stx_size - range.src_offset;
	moved(rec, (int)range.src_fd, TH_OP(TH_READ, TH_HOW_CLONE, 0), (long long)range.src_offset,
	      range.src_length);
	moved(rec, (int)c->arg[0], TH_OP(TH_WRITE, TH_HOW_CLONE, 0), (long long)range.dest_offset,
	      range.src_length);
}

static void changed(struct rec *rec, const struct th_call *c, enum th_name_op op, int dir, int path,
		    int new_dir, int new_path)
{
	struct name_change change = {
		.op = op,
		.dir = dir < 0 ? TH_AT_FDCWD : (int)c->arg[dir],
		.path = (const char *)c->arg[path],
		.new_dir = new_dir < 0 ? TH_AT_FDCWD : (int)c->arg[new_dir],
		.new_path = new_path < 0 ? NULL : (const char *)c->arg[new_path],
	};

	if (op == TH_NAME_TRUNCATE)
		change.size = (unsigned long)c->arg[1];
	if (!th_failed(c->ret))
		name_changed(rec, &change);
}

static void do_rename(struct rec *rec, const struct th_call *c)
{
	bool at = c->nr != __NR_rename;
	bool exchange = c->nr == __NR_renameat2 && (c->arg[4] & RENAME_EXCHANGE_FLAG);

	meta(rec, TH_META_RENAME, c);
	changed(rec, c, exchange ? TH_NAME_EXCHANGE : TH_NAME_RENAME, at ? 0 : -1, at ? 1 : 0,
		at ? 2 : -1, at ? 3 : 1);
}

static void do_link(struct rec *rec, const struct th_call *c)
{
	bool at = c->nr == __NR_linkat;

	changed(rec, c, TH_NAME_LINK, at ? 0 : -1, at ? 1 : 0, at ? 2 : -1, at ? 3 : 1);
}

static void do_symlink(struct rec *rec, const struct th_call *c)
{
	bool at = c->nr == __NR_symlinkat;

	changed(rec, c, TH_NAME_SYMLINK, at ? 1 : -1, at ? 2 : 1, -1, 0);
}

static void do_unlink(struct rec *rec, const struct th_call *c)
{
	bool at = c->nr == __NR_unlinkat;
	bool dir = c->nr == __NR_rmdir || (at && (c->arg[2] & AT_REMOVEDIR));

	meta(rec, TH_META_UNLINK, c);
	changed(rec, c, dir ? TH_NAME_RMDIR : TH_NAME_UNLINK, at ? 0 : -1, at, -1, -1);
}

static void do_mkdir(struct rec *rec, const struct th_call *c)
{
	bool at = c->nr == __NR_mkdirat;

	meta(rec, TH_META_MKDIR, c);
	changed(rec, c, TH_NAME_MKDIR, at ? 0 : -1, at, -1, -1);
}

static void do_truncate(struct rec *rec, const struct th_call *c)
{
	changed(rec, c, TH_NAME_TRUNCATE, -1, 0, -1, -1);
}

static void do_mknod(struct rec *rec, const struct th_call *c)
{
	unsigned int type = (unsigned int)c->arg[c->nr == __NR_mknodat ? 2 : 1] & S_IFMT;

	if (!c->ret && (!type || type == S_IFREG))
		unknown(rec, c);
}

static void do_stat(struct rec *rec, const struct th_call *c)
{
	bool by_fd = (c->nr == __NR_newfstatat && (c->arg[3] & AT_EMPTY_PATH)) ||
		     (c->nr == __NR_statx && (c->arg[2] & AT_EMPTY_PATH));

	if (!by_fd) /* no path is looked up */
		meta(rec, TH_META_STAT, c);
}

static void do_readdir(struct rec *rec, const struct th_call *c)
{
	meta(rec, TH_META_READDIR, c);
}

static void do_chmod(struct rec *rec, const struct th_call *c)
{
	meta(rec, TH_META_CHMOD, c);
}

static void do_xattr(struct rec *rec, const struct th_call *c)
{
	meta(rec, TH_META_XATTR, c);
}

static void do_access(struct rec *rec, const struct th_call *c)
{
	meta(rec, TH_META_ACCESS, c);
}

static void do_chdir(struct rec *rec, const struct th_call *c)
{
	if (!c->ret)
		process_moved(rec);
}

static void before_chroot(struct rec *rec, struct th_call *c)
{
	struct statx facts;

	if (!th_failed(th_sys(__NR_statx, TH_AT_FDCWD, c->arg[0], 0, STATX_TYPE, &facts)))
		c->note = path_at(rec, TH_AT_FDCWD, (const char *)c->arg[0]);
}

static void do_chroot(struct rec *rec, const struct th_call *c)
{
	if (!c->ret)
		process_rooted(rec, (unsigned int)c->note);
}

static void do_wait4(struct rec *rec, const struct th_call *c)
{
	int status = c->ret > 0 && c->arg[1] ? *(const int *)c->arg[1] : 0x7f;

	if ((status & 0xff) != 0x7f) /* stopped, or not asked for */
		process_waited(rec, (int)c->ret, status);
}

/* The fields of siginfo_t that waitid fills. */
static void do_waitid(struct rec *rec, const struct th_call *c)
{
	const int *info = (const int *)c->arg[2];

	if (c->ret || !info || !info[3] || info[2] < 1 || info[2] > 3)
		return;
	process_waited(rec, info[3], info[2] == 1 ? (info[5] & 0xff) << 8 : info[5] & 0x7f);
}

/* A filter may forbid the calls that are made here: nothing more is recorded. */
static void do_seccomp(struct rec *rec, const struct th_call *c)
{
	bool filter = c->nr == __NR_seccomp ? c->arg[0] < 2 : c->arg[0] == PR_SET_SECCOMP_MODE;

	if (!c->ret && filter)
		process_stopped(rec);
}

static void do_uring(struct rec *rec, const struct th_call *c)
{
	if (!th_failed(c->ret))
		unknown(rec, c);
}

/* clang-format off */
static const struct row {
	unsigned short nr;
	void (*before)(struct rec *rec, struct th_call *c);
	handler *after;
} rows[] = {
	{__NR_read, NULL, do_read}, {__NR_readv, NULL, do_read},
	{__NR_write, NULL, do_write}, {__NR_writev, NULL, do_write},
	{__NR_pread64, NULL, do_pread}, {__NR_preadv, NULL, do_pread},
	{__NR_preadv2, NULL, do_pread},
	{__NR_pwrite64, NULL, do_pwrite}, {__NR_pwritev, NULL, do_pwrite},
	{__NR_pwritev2, NULL, do_pwrite},
	{__NR_open, before_open, do_open}, {__NR_openat, before_open, do_open},
	{__NR_openat2, before_open, do_open}, {__NR_creat, before_open, do_open},
	{__NR_close, before_close, do_close},
	{__NR_dup, NULL, do_dup}, {__NR_dup2, before_dup2, do_dup},
	{__NR_dup3, before_dup2, do_dup}, {__NR_fcntl, NULL, do_fcntl},
	{__NR_close_range, before_close_range, do_close_range},
	{__NR_lseek, NULL, do_lseek},
	{__NR_copy_file_range, NULL, do_copy}, {__NR_splice, NULL, do_copy},
	{__NR_sendfile, NULL, do_sendfile}, {__NR_tee, NULL, do_tee},
	{__NR_vmsplice, NULL, do_vmsplice},
	{__NR_mmap, NULL, map_mmap}, {__NR_munmap, NULL, map_munmap},
	{__NR_mremap, NULL, map_mremap}, {__NR_mprotect, NULL, map_mprotect},
	{__NR_pkey_mprotect, NULL, map_mprotect},
	{__NR_ftruncate, NULL, do_ftruncate}, {__NR_truncate, NULL, do_truncate},
	{__NR_fallocate, NULL, do_fallocate}, {__NR_ioctl, NULL, do_ioctl},
	{__NR_rename, NULL, do_rename}, {__NR_renameat, NULL, do_rename},
	{__NR_renameat2, NULL, do_rename},
	{__NR_link, NULL, do_link}, {__NR_linkat, NULL, do_link},
	{__NR_symlink, NULL, do_symlink}, {__NR_symlinkat, NULL, do_symlink},
	{__NR_unlink, NULL, do_unlink}, {__NR_unlinkat, NULL, do_unlink},
	{__NR_rmdir, NULL, do_unlink},
	{__NR_mkdir, NULL, do_mkdir}, {__NR_mkdirat, NULL, do_mkdir},
	{__NR_mknod, NULL, do_mknod}, {__NR_mknodat, NULL, do_mknod},
	{__NR_stat, NULL, do_stat}, {__NR_lstat, NULL, do_stat},
	{__NR_newfstatat, NULL, do_stat}, {__NR_statx, NULL, do_stat},
	{__NR_getdents, NULL, do_readdir}, {__NR_getdents64, NULL, do_readdir},
	{__NR_chmod, NULL, do_chmod}, {__NR_fchmod, NULL, do_chmod},
	{__NR_fchmodat, NULL, do_chmod},
	{__NR_setxattr, NULL, do_xattr}, {__NR_lsetxattr, NULL, do_xattr},
	{__NR_fsetxattr, NULL, do_xattr}, {__NR_getxattr, NULL, do_xattr},
	{__NR_lgetxattr, NULL, do_xattr}, {__NR_fgetxattr, NULL, do_xattr},
	{__NR_listxattr, NULL, do_xattr}, {__NR_llistxattr, NULL, do_xattr},
	{__NR_flistxattr, NULL, do_xattr}, {__NR_removexattr, NULL, do_xattr},
	{__NR_lremovexattr, NULL, do_xattr}, {__NR_fremovexattr, NULL, do_xattr},
	{__NR_access, NULL, do_access}, {__NR_faccessat, NULL, do_access},
	{__NR_faccessat2, NULL, do_access},
	{__NR_chroot, before_chroot, do_chroot}, {__NR_chdir, NULL, do_chdir}, {__NR_fchdir, NULL, do_chdir},
	{__NR_wait4, NULL, do_wait4}, {__NR_waitid, NULL, do_waitid},
	{__NR_prctl, NULL, do_seccomp}, {__NR_seccomp, NULL, do_seccomp},
	{__NR_io_uring_setup, NULL, do_uring}, {__NR_io_submit, aio_submit, NULL},
	{__NR_remap_file_pages, NULL, do_uring},
};
/* clang-format on */

#define ROWS (sizeof(rows) / sizeof(*rows))

static unsigned short wanted_before[ROWS + 2], wanted[ROWS + 1];
static const struct row *by_number[TH_CALLS];

static bool start(const char *value, const struct th_program *program)
{
	unsigned int before = 0, after = 0;

	for (unsigned int i = 0; i < ROWS; i++) {
		by_number[rows[i].nr] = &rows[i];
		if (rows[i].before)
			wanted_before[before++] = rows[i].nr;
		if (rows[i].after)
			wanted[after++] = rows[i].nr;
	}
	wanted_before[before++] = __NR_exit_group;
	wanted_before[before] = wanted[after] = TH_CALLS;
	return arena_open(value) && process_start(program);
}

static void before(struct th_call *call)
{
	if (call->nr == __NR_exit_group) {
		process_exits((int)call->arg[0]);
		return;
	}
	struct rec *rec = rec_here();

	if (rec)
		by_number[call->nr]->before(rec, call);
}

static void after(const struct th_call *call)
{
	struct rec *rec = rec_here();

	if (rec)
		by_number[call->nr]->after(rec, call);
}

const struct th_observer th_recorder = {
	.variable = "TRACEHINT_RECORD",
	.start = start,
	.before_calls = wanted_before,
	.calls = wanted,
	.before = before,
	.after = after,
	.forking = process_forking,
	.forked = process_forked,
	.executing = process_executing,
	.not_executed = process_not_executed,
};
