// SPDX-License-Identifier: Apache-2.0
/* Detects new files: an open that may create and returns an empty file, a link of an O_TMPFILE. */
#include <linux/fcntl.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include "core.h"

#define AT_EMPTY_PATH 0x1000

/* Positions of the arguments of an open; -1: none. */
static const struct open_row {
	short nr;
	signed char dir, path, flags;
} opens[] = {
	{__NR_open, -1, 0, 1},
	{__NR_openat, 0, 1, 2},
	{__NR_openat2, 0, 1, -1},
	{__NR_creat, -1, 0, -1},
};

static bool is_empty_file(int fd)
{
	struct statx facts;

	return !th_failed(th_sys(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE,
				 &facts)) &&
	       (facts.stx_mode & S_IFMT) == S_IFREG && !facts.stx_size;
}

/* Return the row of an open; NULL: another call. */
static const struct open_row *open_row(const struct th_call *call)
{
	for (unsigned int i = 0; i < sizeof(opens) / sizeof(*opens); i++)
		if (opens[i].nr == call->nr)
			return &opens[i];
	return NULL;
}

/* Whether it is an open that creates a missing file. */
bool th_may_create(const struct th_call *call)
{
	const struct open_row *row = open_row(call);

	if (!row)
		return false;
	if (call->nr == __NR_openat2)
		return th_readable((const void *)call->arg[2], 8) &&
		       (((const struct open_how *)call->arg[2])->flags & O_CREAT);
	return row->flags < 0 || (call->arg[(int)row->flags] & O_CREAT);
}

static bool opened(const struct th_call *call)
{
	const struct open_row *row = open_row(call);

	if (!row)
		return false;
	if (th_may_create(call) && is_empty_file((int)call->ret))
		th_created(row->dir < 0 ? TH_AT_FDCWD : (int)call->arg[(int)row->dir],
			   (const char *)call->arg[(int)row->path], (int)call->ret);
	return true;
}

/* Return the descriptor in "/proc/self/fd/N" or similar; -1: none. */
static int descriptor_in(const char *path)
{
	int fd = 0;
	const char *at = th_base(path);

	if (!th_starts(path, "/proc/") && !th_starts(path, "/dev/fd/"))
		return -1;
	for (const char *c = at; *c; c++) {
		if (*c < '0' || *c > '9' || fd > 100000000)
			return -1;
		fd = fd * 10 + (*c - '0');
	}
	return *at ? fd : -1;
}

/* Report a file that was open without a name and now has one. */
static void linked(const struct th_call *call)
{
	const char *from = (const char *)call->arg[1];
	int fd = -1;

	if (call->nr != __NR_linkat)
		return;
	if ((call->arg[4] & AT_EMPTY_PATH) && !*from)
		fd = (int)call->arg[0];
	else
		fd = descriptor_in(from);
	long flags = fd < 0 ? -1 : th_sys(__NR_fcntl, fd, F_GETFL);

	if (flags > 0 && (flags & __O_TMPFILE))
		th_created((int)call->arg[2], (const char *)call->arg[3], fd);
}

void th_check_created(const struct th_call *call)
{
	if (!opened(call))
		linked(call);
}
