/* SPDX-License-Identifier: Apache-2.0 */
/* What every operation does to its episode. */
#ifndef TRACEHINT_RUNS_H
#define TRACEHINT_RUNS_H

#include "../../ebpf/runs.h"
#include "record.h"

/* Whether an operation at `start` goes on where `in` ended, as one more of the same kind. */
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

/* A signal handler may close the descriptor meanwhile: the episode's place is not used again then. */
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
