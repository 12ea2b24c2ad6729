/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Between which addresses a process has mapped files. Whoever changes anonymous
 * memory, as allocators of threads do all the time, need not look a mapping up,
 * which fails while another thread changes mappings.
 */
#ifndef TRACEHINT_SPANS_BPF_H
#define TRACEHINT_SPANS_BPF_H

#include "state.bpf.h"

#define SPAN_TRIES 8

/* Both only grow. All zero: there is none. */
struct span {
	u64 below; /* the complement of the first address */
	u64 end;
};

struct spans {
	struct span files;    /* all mappings of files, but those of libraries */
	struct span writable; /* shared, of files that are open for writing */
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

/* What a process begins with: byte 0 for nothing, 0xff for anything. */
static __always_inline void spans_begin(u32 slot, int byte)
{
	struct spans *at = spans_at(slot);

	if (at)
		__builtin_memset(at, byte, sizeof(*at));
}

static __always_inline bool span_has(struct span *span, u64 address)
{
	return address < span->end && address >= ~span->below;
}

/* Not of a process that ran before it was followed. */
static __always_inline bool span_known(struct span *span)
{
	return span->end != ~0ULL;
}

/* Threads map at the same time; where they meet too often, anything is in the span. */
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
