// SPDX-License-Identifier: Apache-2.0
/* Calls that transfer bytes. */
#include <linux/fcntl.h>
#include <linux/fs.h>
#include "handlers.h"

void do_read(struct rec *rec, const struct th_call *c)
{
	if (c->ret > 0)
		moved(rec, c->arg[0], TH_OP(TH_READ, TH_HOW_READ, 0), -1, (unsigned long)c->ret);
}

void do_write(struct rec *rec, const struct th_call *c)
{
	if (c->ret > 0)
		moved(rec, c->arg[0], TH_OP(TH_WRITE, TH_HOW_WRITE, 0), -1, (unsigned long)c->ret);
}

void do_pread(struct rec *rec, const struct th_call *c)
{
	if (c->ret > 0)
		moved(rec, c->arg[0], TH_OP(TH_READ, TH_HOW_READ, 0), c->arg[3],
		      (unsigned long)c->ret);
}

/* With O_APPEND a positioned write appends, whatever its offset is. */
void do_pwrite(struct rec *rec, const struct th_call *c)
{
	unsigned int flags = c->nr == __NR_pwritev2 ? (unsigned int)c->arg[5] : 0;
	struct slot *slot = c->ret > 0 ? slot_use(rec, c->arg[0]) : NULL;
	long long at = c->arg[3];
	unsigned long long size;

	if (!slot)
		return;
	if (at >= 0 && !(flags & 32 /* RWF_NOAPPEND */) && ((flags & RWF_APPEND) || slot->append) &&
	    size_of(c->arg[0], &size))
		at = (long long)size - c->ret;
	moved(rec, c->arg[0], TH_OP(TH_WRITE, TH_HOW_WRITE, 0), at, (unsigned long)c->ret);
}

/* Return the offset before the call advanced it by `n`; without one, the file position (-1). */
static long long began_at(long offset, long n)
{
	return offset ? *(const long long *)offset - n : -1;
}

void do_copy(struct rec *rec, const struct th_call *c)
{
	unsigned int how = c->nr == __NR_splice ? TH_HOW_SPLICE : TH_HOW_COPY;

	if (c->ret <= 0)
		return;
	moved(rec, c->arg[0], TH_OP(TH_READ, how, 0), began_at(c->arg[1], c->ret),
	      (unsigned long)c->ret);
	moved(rec, c->arg[2], TH_OP(TH_WRITE, how, 0), began_at(c->arg[3], c->ret),
	      (unsigned long)c->ret);
}

void do_sendfile(struct rec *rec, const struct th_call *c)
{
	if (c->ret <= 0)
		return;
	moved(rec, c->arg[1], TH_OP(TH_READ, TH_HOW_SENDFILE, 0), began_at(c->arg[2], c->ret),
	      (unsigned long)c->ret);
	moved(rec, c->arg[0], TH_OP(TH_WRITE, TH_HOW_SENDFILE, 0), -1, (unsigned long)c->ret);
}

void do_tee(struct rec *rec, const struct th_call *c)
{
	if (c->ret <= 0)
		return;
	moved(rec, c->arg[0], TH_OP(TH_READ, TH_HOW_SPLICE, 0), -1, (unsigned long)c->ret);
	moved(rec, c->arg[1], TH_OP(TH_WRITE, TH_HOW_SPLICE, 0), -1, (unsigned long)c->ret);
}

void do_vmsplice(struct rec *rec, const struct th_call *c)
{
	long flags = c->ret > 0 ? th_sys(__NR_fcntl, c->arg[0], F_GETFL) : -1;

	if (flags >= 0)
		moved(rec, c->arg[0],
		      TH_OP(flags & O_ACCMODE ? TH_WRITE : TH_READ, TH_HOW_SPLICE, 0), -1,
		      (unsigned long)c->ret);
}
