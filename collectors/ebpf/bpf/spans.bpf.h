/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Address ranges in which a process has mapped files. Changes of anonymous memory, frequent in
 * allocators of threads, then need no look-up of a mapping, which fails while another thread
 * changes mappings.
 */
#ifndef TRACEHINT_SPANS_BPF_H
#define TRACEHINT_SPANS_BPF_H

#include "state.bpf.h"

#define SPAN_TRIES 8
#define WRITES_KEPT 8

/* Both only grow. All zero: empty. */
struct span {
	u64 below; /* the complement of the first address */
	u64 end;
};

struct spans {
	struct span files;    /* all mappings of files except libraries */
	struct span writable; /* shared, of files that are open for writing */
	/* Write faults whose mapping could not be looked up yet: the page | the error code. */
	u64 kept[WRITES_KEPT];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* slots */
	__type(key, u32);
	__type(value, struct spans);
} spans SEC(".maps");

static __always_inline struct spans *spans_at(u32 slot)
{
	return bpf_map_lookup_elem(&spans, &slot);
}

/* Initial spans of a process: byte 0 for none, 0xff for all addresses. */
static __always_inline void spans_begin(u32 slot, int byte)
{
	struct spans *at = spans_at(slot);

	if (!at)
		return;
	__builtin_memset(&at->files, byte, sizeof(at->files));
	__builtin_memset(&at->writable, byte, sizeof(at->writable));
	__builtin_memset(at->kept, 0, sizeof(at->kept));
}

/* After a fork: the parent's mappings, not its faults. */
static __always_inline void spans_copy(u32 from_slot, u32 to_slot)
{
	struct spans *from = spans_at(from_slot), *to = spans_at(to_slot);

	if (!from || !to)
		return;
	to->files = from->files;
	to->writable = from->writable;
}

static __always_inline bool span_has(struct span *span, u64 address)
{
	return address < span->end && address >= ~span->below;
}

/* False for a process that ran before it was followed. */
static __always_inline bool span_known(struct span *span)
{
	return span->end != ~0ULL;
}

static __always_inline void write_lose(struct th_process *proc, struct spans *spans)
{
	proc->flags |= TH_PROC_WRITES_UNSEEN; /* record the upper bound from now on */
	if (span_known(&spans->writable))
		lose(proc, TH_LOST_EXTENTS, 1);
}

/* The mappings end: faults that were kept can no longer be assigned. */
static __always_inline void spans_end(struct th_process *proc)
{
	struct spans *at = spans_at(proc->slot);
	u32 i;

	if (!at || !proc->writes_kept)
		return;
	for (i = 0; i < WRITES_KEPT; i++)
		if (at->kept[i])
			write_lose(proc, at);
}

/* Raise a bound atomically; after too many races the span contains all addresses. */
static __always_inline void raise(u64 *bound, u64 to)
{
	u64 old;
	u32 i;

	for (i = 0; i < SPAN_TRIES; i++) {
		old = *bound;
		if (old >= to || __sync_val_compare_and_swap(bound, old, to) == old)
			return;
	}
	*bound = ~0ULL;
}

GLOBAL int spans_add(u32 slot, u64 start, u64 len, u32 writable)
{
	struct spans *at = spans_at(slot);

	if (!at)
		return 0;
	raise(&at->files.below, ~start);
	raise(&at->files.end, start + len);
	if (writable) {
		raise(&at->writable.below, ~start);
		raise(&at->writable.end, start + len);
	}
	return 0;
}

#endif
