/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Runs of accesses, for the BPF program and the preload library: `inner` grows while each operation
 * starts where the previous one ended. When it breaks, it is folded into `outer` as one more piece
 * of a constant stride, or outer becomes a record and inner replaces it.
 */
#ifndef TRACEHINT_EBPF_RUNS_H
#define TRACEHINT_EBPF_RUNS_H

#include "layout.h"

#define MAX_RUN_OPS 0x7fffffffU
#define RUN_INLINE static inline __attribute__((always_inline))

/* Fold inner into outer if it is one more piece of it; return whether it was. */
RUN_INLINE _Bool run_fold(struct th_run *outer, const struct th_run *inner, unsigned long long gap)
{
	unsigned long long step = inner->start - outer->start;

	if (inner->op > TH_WRITE || outer->op != inner->op || outer->how != inner->how ||
	    outer->inexact != inner->inexact || outer->length != inner->length ||
	    inner->first_ns - outer->last_ns > gap ||
	    outer->ops + (unsigned long long)inner->ops > MAX_RUN_OPS)
		return 0;
	if (outer->count == 1) {
		if (step) {
			if (inner->start < outer->start + outer->length)
				return 0;
			outer->stride = (long long)step;
			outer->count = 2;
		}
	} else if (step == (unsigned long long)outer->stride * outer->count) {
		outer->count++;
	} else {
		return 0;
	}
	outer->ops += inner->ops;
	outer->bytes += inner->bytes;
	outer->last_ns = inner->last_ns;
	return 1;
}

RUN_INLINE void run_start(struct th_run *in, unsigned int op_how, unsigned long long start,
			  unsigned long long len, unsigned long long now)
{
	in->start = start;
	in->length = len;
	in->stride = 0;
	in->bytes = (op_how & 0xff) <= TH_WRITE ? len : 0;
	in->first_ns = now;
	in->last_ns = now;
	in->count = 1;
	in->op = op_how & 0xff;
	in->how = op_how >> 8 & 0xff;
	in->inexact = op_how >> 16 & 1;
	in->ops = 1;
}

/* Bytes from `start` on that the run already covers: windows of faults overlap, ld.so maps parts
 * over one large mapping. */
RUN_INLINE unsigned long long run_mapped(const struct th_run *in, unsigned int op_how,
					 unsigned long long start)
{
	if ((op_how >> 8 & 0xff) != TH_HOW_MMAP || !in->ops || in->op != (op_how & 0xff) ||
	    in->how != TH_HOW_MMAP || start < in->start || start >= in->start + in->length)
		return 0;
	return in->start + in->length - start;
}

RUN_INLINE void count_op(struct th_episode *ep, unsigned int op, unsigned long long start,
			 unsigned long long len)
{
	if (op == TH_READ) {
		ep->read_ops++;
		ep->read_bytes += len;
	} else {
		ep->write_ops++;
		ep->write_bytes += len;
	}
	ep->small_ops += len < 4096;
	ep->seq_ops += start == ep->next;
	ep->next = start + len;
}

#endif
