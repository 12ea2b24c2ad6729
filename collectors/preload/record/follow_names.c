// SPDX-License-Identifier: Apache-2.0
/* Names that a followed program changes: noted before the call, recorded once they did change. */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "follow.h"

#define PAGE 4096UL
#define EXCHANGE 2

/* Where the arguments lie; -1: none. */
static const struct {
	unsigned short nr;
	signed char dir, path, new_dir, new_path;
	unsigned char op;
} rows[] = {
	{__NR_rename, -1, 0, -1, 1, TH_NAME_RENAME},   {__NR_renameat, 0, 1, 2, 3, TH_NAME_RENAME},
	{__NR_renameat2, 0, 1, 2, 3, TH_NAME_RENAME},  {__NR_link, -1, 0, -1, 1, TH_NAME_LINK},
	{__NR_linkat, 0, 1, 2, 3, TH_NAME_LINK},       {__NR_unlink, -1, 0, -1, -1, TH_NAME_UNLINK},
	{__NR_unlinkat, 0, 1, -1, -1, TH_NAME_UNLINK}, {__NR_rmdir, -1, 0, -1, -1, TH_NAME_RMDIR},
	{__NR_mkdir, -1, 0, -1, -1, TH_NAME_MKDIR},    {__NR_mkdirat, 0, 1, -1, -1, TH_NAME_MKDIR},
};

static bool read_text(int tid, unsigned long at, char *to)
{
	unsigned long got = 0;

	while (got < FOLLOW_PATH) {
		unsigned long n = PAGE - (at + got) % PAGE;

		if (n > FOLLOW_PATH - got)
			n = FOLLOW_PATH - got;
		unsigned long here[2] = {(unsigned long)to + got, n}, there[2] = {at + got, n};

		if (th_sys(__NR_process_vm_readv, tid, here, 1, there, 1, 0) != (long)n)
			return false;
		for (unsigned long i = 0; i < n; i++)
			if (!to[got + i])
				return true;
		got += n;
	}
	return false;
}

/* The whole name that these arguments of the call give; false where it cannot be read. */
bool follow_path(const struct seccomp_notif *call, int dir, int path, char *to)
{
	static TH_LARGE char text[FOLLOW_PATH];
	char name[64];
	int fd = dir < 0 ? TH_AT_FDCWD : (int)call->data.args[dir];

	if (!read_text((int)call->pid, call->data.args[path], text) || !*text)
		return false;
	size_t len = th_len(text);
	long n = 0;

	if (*text != '/') {
		follow_proc(name, (int)call->pid, fd == TH_AT_FDCWD ? "cwd" : "fd",
			    fd == TH_AT_FDCWD ? -1 : fd);
		n = th_sys(__NR_readlink, name, to, FOLLOW_PATH);
		if (n <= 0 || *to != '/' || n + 1 + len + 1 > FOLLOW_PATH)
			return false;
		to[n++] = '/';
	}
	th_copy(to + n, text, len + 1);
	return true;
}

static unsigned long long inode_at(const char *path)
{
	struct statx facts;

	return th_failed(th_sys(__NR_statx, TH_AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO,
				&facts))
		       ? 0
		       : facts.stx_ino;
}

void follow_name(struct target *target, const struct seccomp_notif *call)
{
	struct pending *p = &target->pending;

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].nr != call->data.nr)
			continue;
		p->op = rows[i].op;
		if (call->data.nr == __NR_renameat2 && (call->data.args[4] & EXCHANGE))
			p->op = TH_NAME_EXCHANGE;
		if (call->data.nr == __NR_unlinkat && (call->data.args[2] & 0x200))
			p->op = TH_NAME_RMDIR;
		*p->new = '\0';
		p->is = follow_path(call, rows[i].dir, rows[i].path, p->old) &&
			(rows[i].new_path < 0 ||
			 follow_path(call, rows[i].new_dir, rows[i].new_path, p->new));
		p->ino = p->is ? inode_at(p->old) : 0;
		if (!p->is)
			lose(&target->rec, TH_LOST_LIFECYCLE, 1);
		return;
	}
}

static bool happened(const struct pending *p)
{
	switch (p->op) {
	case TH_NAME_UNLINK:
	case TH_NAME_RMDIR:
		return p->ino && inode_at(p->old) != p->ino;
	case TH_NAME_MKDIR:
		return !p->ino && inode_at(p->old);
	default:
		return p->ino && inode_at(p->new) == p->ino;
	}
}

void follow_settle_name(struct target *target)
{
	struct pending *p = &target->pending;
	struct name_change change = {
		.op = p->op,
		.dir = TH_AT_FDCWD,
		.path = p->old,
		.new_dir = TH_AT_FDCWD,
		.new_path = *p->new ? p->new : NULL,
	};

	if (p->is && happened(p))
		name_changed(&target->rec, &change);
	p->is = false;
}
