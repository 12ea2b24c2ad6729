// SPDX-License-Identifier: Apache-2.0
/* Calls that change ranges of a file without a transfer to or from memory. */
#include <linux/fs.h>
#include "handlers.h"

void do_ftruncate(struct rec *rec, const struct th_call *c)
{
	if (c->ret)
		return;
	touched(rec, (int)c->arg[0], TH_OP(TH_TRUNCATE, TH_HOW_TRUNCATE, 0),
		(unsigned long)c->arg[1], 0);
}

/* Record a shift of all bytes after a range, as a copy within the file. */
static void record_shift(struct rec *rec, const struct th_call *c, bool inserted)
{
	unsigned long long offset = (unsigned long)c->arg[2], len = (unsigned long)c->arg[3];
	unsigned long long from = inserted ? offset : offset + len;
	unsigned long long to = inserted ? offset + len : offset;
	unsigned long long size;

	if (!size_of((int)c->arg[0], &size) || size <= to)
		return;
	touched(rec, (int)c->arg[0], TH_OP(TH_READ, TH_HOW_FALLOCATE, 0), from, size - to);
	touched(rec, (int)c->arg[0], TH_OP(TH_WRITE, TH_HOW_FALLOCATE, 0), to, size - to);
	if (inserted)
		touched(rec, (int)c->arg[0], TH_OP(TH_DEALLOCATE, TH_HOW_FALLOCATE, 0), offset,
			len);
}

void do_fallocate(struct rec *rec, const struct th_call *c)
{
	unsigned int mode = (unsigned int)c->arg[1];
	unsigned long long offset = (unsigned long)c->arg[2], len = (unsigned long)c->arg[3];

	if (c->ret)
		return;
	if (mode & 2 /* PUNCH_HOLE */)
		touched(rec, (int)c->arg[0], TH_OP(TH_DEALLOCATE, TH_HOW_FALLOCATE, 0), offset,
			len);
	else if (mode & (8 | 32) /* COLLAPSE_RANGE, INSERT_RANGE */)
		record_shift(rec, c, mode & 32);
	else if (mode & 16 /* ZERO_RANGE */)
		touched(rec, (int)c->arg[0], TH_OP(TH_WRITE, TH_HOW_FALLOCATE, 0), offset, len);
	/* other modes reserve space and change no byte */
}

void do_ioctl(struct rec *rec, const struct th_call *c)
{
	unsigned int command = (unsigned int)c->arg[1];
	struct file_clone_range range = {.src_fd = (int)c->arg[2]};
	unsigned long long size;

	if (c->ret || (command != FICLONE && command != FICLONERANGE))
		return;
	if (command == FICLONERANGE)
		th_copy(&range, (const void *)c->arg[2], sizeof(range));
	if (!range.src_length && size_of((int)range.src_fd, &size))
		range.src_length = size - range.src_offset;
	moved(rec, (int)range.src_fd, TH_OP(TH_READ, TH_HOW_CLONE, 0), (long long)range.src_offset,
	      range.src_length);
	moved(rec, (int)c->arg[0], TH_OP(TH_WRITE, TH_HOW_CLONE, 0), (long long)range.dest_offset,
	      range.src_length);
}
