/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of an episode by its operations. */
#ifndef TRACEHINT_RUNS_H
#define TRACEHINT_RUNS_H

#include "../../ebpf/runs.h"
#include "record.h"

/* Whether an operation at `start` continues the run `in`: adjacent, of the same kind, no pause. */
static inline bool goes_on(const struct th_run *in, unsigned int op_how, unsigned long long start,
			   unsigned long long now)
{
	unsigned int kind = in->op | in->how << 8 | in->inexact << 16;

	return in->ops && kind == op_how && in->start + in->length == start &&
	       now - in->last_ns <= arena->gap && in->ops < MAX_RUN_OPS;
}

static inline void run_grow(struct th_run *in, unsigned long long len, unsigned long long now)
{
	in->length += len;
	in->bytes += len;
	in->ops++;
	in->last_ns = now;
}

/* Keep the episode's memory from reuse: a signal handler may close the descriptor meanwhile. */
static inline void hold(struct slot *slot)
{
	slot->held |= HELD_CALL;
	__asm__ volatile("" : : : "memory");
}

static inline void release(struct slot *slot)
{
	__asm__ volatile("" : : : "memory");
	slot->held &= (unsigned char)~HELD_CALL;
}

#endif
