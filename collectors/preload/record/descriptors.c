// SPDX-License-Identifier: Apache-2.0
/* Calls that open, duplicate and close descriptors, and change their positions. */
#include <linux/fcntl.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include "handlers.h"

#define CLOSE_RANGE_CLOEXEC 4

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
					  th_readable((const void *)c->arg[2], 8)
						  ? ((struct open_how *)c->arg[2])->flags
						  : 0};
	}
	return (struct open_args){(int)c->arg[0], (const char *)c->arg[1], (unsigned int)c->arg[2]};
}

/* Note whether an open creates its file, which it may do if the file does not exist. */
void before_open(struct rec *rec, struct th_call *c)
{
	struct open_args args = open_args(c);
	struct statx facts;

	(void)rec;
	if ((args.flags & (O_CREAT | O_EXCL)) == O_CREAT)
		c->note = th_sys(__NR_statx, args.dir, args.path, 0, STATX_TYPE, &facts) == -2;
	else
		c->note = (args.flags & O_CREAT) || (args.flags & __O_TMPFILE);
}

void do_open(struct rec *rec, const struct th_call *c)
{
	if (th_failed(c->ret)) {
		count_meta(rec, TH_META_FAILED_OPEN, c);
		return;
	}
	struct open_args args = open_args(c);
	bool ask = (args.flags & __O_TMPFILE) == __O_TMPFILE || path_is_own(args.path);
	unsigned int path = ask ? 0 : path_at(rec, args.dir, args.path);

	slot_opened(rec, c->ret, path, args.flags, c->note);
}

void before_close(struct rec *rec, struct th_call *c)
{
	slot_settle(rec, (int)c->arg[0]);
}

void do_close(struct rec *rec, const struct th_call *c)
{
	if (!c->ret || c->ret == -4)
		slot_closed(rec, (int)c->arg[0]);
}

void before_dup2(struct rec *rec, struct th_call *c)
{
	if (c->arg[0] == c->arg[1])
		return;
	slot_settle(rec, (int)c->arg[1]);
}

static void shared(struct rec *rec, long fd)
{
	struct slot *slot = slot_at(rec, fd);

	if (slot)
		slot->shared = 1;
}

void do_dup(struct rec *rec, const struct th_call *c)
{
	if (th_failed(c->ret) || c->ret == (int)c->arg[0])
		return;
	shared(rec, (int)c->arg[0]);
	slot_closed(rec, c->ret);
}

void do_fcntl(struct rec *rec, const struct th_call *c)
{
	struct slot *slot = slot_at(rec, (int)c->arg[0]);

	if (c->arg[1] == F_DUPFD || c->arg[1] == F_DUPFD_CLOEXEC)
		do_dup(rec, c);
	else if (c->arg[1] == F_SETFL && !c->ret && slot)
		slot->append = !!(c->arg[2] & O_APPEND);
}

void before_close_range(struct rec *rec, struct th_call *c)
{
	for (unsigned long fd = (unsigned int)c->arg[0];
	     fd <= (unsigned int)c->arg[1] && fd < rec->top; fd++)
		slot_settle(rec, (long)fd);
}

void do_close_range(struct rec *rec, const struct th_call *c)
{
	if (c->ret || (c->arg[2] & CLOSE_RANGE_CLOEXEC))
		return;
	for (unsigned long fd = (unsigned int)c->arg[0];
	     fd <= (unsigned int)c->arg[1] && fd < rec->top; fd++)
		slot_closed(rec, (long)fd);
}

void do_lseek(struct rec *rec, const struct th_call *c)
{
	struct slot *slot = slot_at(rec, (int)c->arg[0]);

	if (!th_failed(c->ret) && slot && slot->kind == SLOT_FILE)
		slot->pos = c->ret;
}
