/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Runs of accesses (runs.h): finished ones are sent to the loader. */
#ifndef TRACEHINT_RUN_BPF_H
#define TRACEHINT_RUN_BPF_H

#include "../runs.h"
#include "state.bpf.h"

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

static __always_inline void run_break(struct th_episode *ep)
{
	if (!ep->inner.ops)
		return;
	if (ep->outer.ops) {
		if (run_fold(&ep->outer, &ep->inner, cfg.gap_ns))
			return;
		send_run(ep);
	}
	ep->outer = ep->inner;
}

/*
 * Another operation of a run. Reading the clock each time would add half of the other costs; by the
 * tick alone, an operation could be ordered before or after others up to two ticks away. So the
 * clock is read at the run's first operation in a tick, and after any event of the process with an
 * exact time: relative to that, and to events of other processes that it caused, the run's end is
 * always ordered correctly.
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
	run_start(in, op_how, start, len, now);
	in->last_tick = now_tick();
	in->moment = moment;
	return 0;
}

#define OP(op, how, inexact) ((op) | (how) << 8 | (inexact) << 16)

/* Record an access of `len` bytes at `start`; truncations have no length and are never joined. */
static __always_inline void run_add(struct th_process *proc, struct th_episode *ep, u32 op_how,
				    u64 start, u64 len)
{
	struct th_run *in = &ep->inner;
	u64 known = run_mapped(in, op_how, start);
	u32 op = op_how & 0xff;

	if (known) {
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
