/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Runs of accesses. `inner` grows while operations join end to start; when it
 * breaks it joins `outer` as one more piece of a constant stride, or outer goes
 * to the loader and inner takes its place.
 */
#ifndef TRACEHINT_RUN_BPF_H
#define TRACEHINT_RUN_BPF_H

#include "state.bpf.h"

#define MAX_RUN_OPS 0x7fffffffU

GLOBAL int send_run(struct th_episode *ep)
{
	struct th_extent rec;
	u64 n;

	if (!ep)
		return 0;
	rec.kind = TH_EXTENT;
	rec.run_seq = ep->run_seq++;
	rec.open_id = ep->open_id;
	rec.run = ep->outer;
	if (!bpf_ringbuf_output(&extents, &rec, sizeof(rec), wake_flags(&extents)))
		return 0;
	n = rec.run.ops;
	ep->lost_ops += n;
	__sync_fetch_and_add(&state.lost[TH_LOST_EXTENTS], n);
	return 0;
}

/* Whether inner is one more piece of outer; if so, outer has it afterwards. */
static __always_inline bool fold(struct th_run *outer, const struct th_run *inner)
{
	u64 step = inner->start - outer->start;

	if (inner->op > TH_WRITE || outer->op != inner->op || outer->how != inner->how ||
	    outer->inexact != inner->inexact || outer->length != inner->length ||
	    inner->first_ns - outer->last_ns > cfg.gap_ns ||
	    outer->ops + (u64)inner->ops > MAX_RUN_OPS)
		return false;
	if (outer->count == 1) {
		if (step) {
			if (inner->start < outer->start + outer->length)
				return false;
			outer->stride = step;
			outer->count = 2;
		}
	} else if (step == (u64)outer->stride * outer->count) {
		outer->count++;
	} else {
		return false;
	}
	outer->ops += inner->ops;
	outer->bytes += inner->bytes;
	outer->last_ns = inner->last_ns;
	return true;
}

static __always_inline void run_break(struct th_episode *ep)
{
	if (!ep->inner.ops)
		return;
	if (ep->outer.ops) {
		if (fold(&ep->outer, &ep->inner))
			return;
		send_run(ep);
	}
	ep->outer = ep->inner;
}

static __always_inline void count_op(struct th_episode *ep, u32 op, u64 start, u64 len)
{
	if (op == TH_READ) {
		ep->read_ops++;
		ep->read_bytes += len;
	} else {
		ep->write_ops++;
		ep->write_bytes += len;
	}
	if (len < 4096)
		ep->small_ops++;
	if (start == ep->next)
		ep->seq_ops++;
	ep->next = start + len;
}

/*
 * Another operation of a run. Reading the clock each time would cost half as much as
 * the rest; the tick alone puts an operation before or after others that were up to
 * two ticks away. So the clock is read at the run's first operation in a tick, and
 * after anything of the process that has an exact time: compared with that, and with
 * what other processes began because of it, the run's end is never on the wrong side.
 */
static __always_inline void run_touch(struct th_process *proc, struct th_run *run)
{
	u32 tick = now_tick();

	if (run->last_tick == tick && run->moment == proc->moment)
		return;
	run->last_tick = tick;
	run->moment = proc->moment;
	run->last_ns = bpf_ktime_get_boot_ns();
}

GLOBAL int run_begin(struct th_episode *ep, u32 op_how, u64 start, u64 len, u32 moment)
{
	u64 now = bpf_ktime_get_boot_ns();
	struct th_run *in;

	if (!ep)
		return 0;
	in = &ep->inner;
	run_break(ep);
	if (!ep->first_ns)
		ep->first_ns = now;
	in->start = start;
	in->length = len;
	in->stride = 0;
	in->bytes = (op_how & 0xff) <= TH_WRITE ? len : 0;
	in->first_ns = now;
	in->last_ns = now;
	in->last_tick = now_tick();
	in->moment = moment;
	in->count = 1;
	in->ops = 1;
	in->op = op_how & 0xff;
	in->how = (op_how >> 8) & 0xff;
	in->inexact = (op_how >> 16) & 1;
	return 0;
}

#define OP(op, how, inexact) ((op) | (how) << 8 | (inexact) << 16)

/* An access of `len` bytes at `start`; truncations have no length and never join. */
static __always_inline void run_add(struct th_process *proc, struct th_episode *ep, u32 op_how,
				    u64 start, u64 len)
{
	struct th_run *in = &ep->inner;
	u32 op = op_how & 0xff;

	if (((op_how >> 8) & 0xff) == TH_HOW_MMAP && in->ops && in->op == op &&
	    in->how == TH_HOW_MMAP && start >= in->start && start < in->start + in->length) {
		/* windows of faults overlap, ld.so maps parts over one large mapping */
		u64 known = in->start + in->length - start;

		if (len <= known) {
			in->ops++;
			run_touch(proc, in);
			return;
		}
		start += known;
		len -= known;
	}
	if (op <= TH_WRITE)
		count_op(ep, op, start, len);
	if (in->ops && in->op == op && in->how == ((op_how >> 8) & 0xff) && op <= TH_WRITE &&
	    in->start + in->length == start && now_tick() - in->last_tick <= cfg.gap_ticks &&
	    in->ops < MAX_RUN_OPS && in->inexact == ((op_how >> 16) & 1)) {
		in->length += len;
		in->bytes += len;
		in->ops++;
		run_touch(proc, in);
		return;
	}
	run_begin(ep, op_how, start, len, ++proc->moment);
}

#endif
