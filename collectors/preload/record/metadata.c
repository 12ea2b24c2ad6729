// SPDX-License-Identifier: Apache-2.0
/* Calls that are counted by kind, and calls whose accesses are unknown. */
#include <linux/fcntl.h>
#include "handlers.h"

#define AT_EMPTY_PATH 0x1000

void count_meta(struct rec *rec, enum th_meta kind, const struct th_call *c)
{
	struct th_process *proc = &rec->page->proc;

	__atomic_fetch_add(&proc->meta[kind], 1, __ATOMIC_RELAXED);
	if (th_failed(c->ret))
		__atomic_fetch_add(&proc->meta_errors[kind], 1, __ATOMIC_RELAXED);
}

void count_unknown(struct rec *rec, const struct th_call *c)
{
	rec->page->proc.unknown_call = (unsigned int)c->nr;
	lose(rec, TH_LOST_UNKNOWN_CALL, 1);
}

/* Transfers by io_uring are not recorded: counts rings, and requests that a call submits. */
void do_uring(struct rec *rec, const struct th_call *c)
{
	unsigned int n = c->nr == __NR_io_uring_setup ? 1 : (unsigned int)c->ret;

	if (th_failed(c->ret) || !n)
		return;
	rec->page->proc.unknown_call = (unsigned int)c->nr;
	lose(rec, TH_LOST_UNKNOWN_CALL, n);
}

void do_stat(struct rec *rec, const struct th_call *c)
{
	bool by_fd = (c->nr == __NR_newfstatat && (c->arg[3] & AT_EMPTY_PATH)) ||
		     (c->nr == __NR_statx && (c->arg[2] & AT_EMPTY_PATH));

	if (!by_fd) /* by descriptor no path is looked up */
		count_meta(rec, TH_META_STAT, c);
}

void do_readdir(struct rec *rec, const struct th_call *c)
{
	count_meta(rec, TH_META_READDIR, c);
}

void do_chmod(struct rec *rec, const struct th_call *c)
{
	count_meta(rec, TH_META_CHMOD, c);
}

void do_xattr(struct rec *rec, const struct th_call *c)
{
	count_meta(rec, TH_META_XATTR, c);
}

void do_access(struct rec *rec, const struct th_call *c)
{
	count_meta(rec, TH_META_ACCESS, c);
}

void do_unknown(struct rec *rec, const struct th_call *c)
{
	if (!th_failed(c->ret))
		count_unknown(rec, c);
}
