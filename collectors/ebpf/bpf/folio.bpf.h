/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Bounds of folios in the page cache. */
#ifndef TRACEHINT_FOLIO_BPF_H
#define TRACEHINT_FOLIO_BPF_H

#include "state.bpf.h"

#define XA_INTERNAL 2 /* low two bits of entries that are not pages */
#define XA_NODE_ABOVE 4096
#define XA_SLOTS 64
#define XA_LEVELS 6

struct pages {
	u64 mapping;
	u64 first;
	u64 end;
};

static __always_inline u64 xa_slot(u64 node, u32 offset)
{
	u64 entry = 0;

	bpf_probe_read_kernel(&entry, sizeof(entry),
			      (void *)(node + bpf_core_field_offset(struct xa_node, slots) +
				       (offset & (XA_SLOTS - 1)) * 8ULL));
	return entry;
}

/*
 * Extend `p` to the folio of a page. Since Linux 6.18 a fault maps a large folio whole, beyond the
 * range in its tracepoint ("mm/filemap: map entire large folio faultaround"). In the tree of the
 * page cache a folio is a slot and its siblings.
 */
GLOBAL int whole_folio(struct pages *p, u64 index)
{
	u64 node, entry, first, end;
	u32 level, shift, offset, n;

	if (!p)
		return 0;
	entry = (u64)K(struct address_space, p->mapping, i_pages.xa_head);
	for (level = 0; level < XA_LEVELS; level++) {
		if ((entry & 3) != XA_INTERNAL || entry <= XA_NODE_ABOVE)
			return 0;
		node = entry - XA_INTERNAL;
		shift = K(struct xa_node, node, shift) & 63;
		offset = (index >> shift) & (XA_SLOTS - 1);
		entry = xa_slot(node, offset);
		if ((entry & 3) == XA_INTERNAL && entry < XA_SLOTS * 4) {
			offset = entry >> 2 & (XA_SLOTS - 1);
			entry = xa_slot(node, offset);
		}
		if ((entry & 3) == XA_INTERNAL)
			continue;
		for (n = 1; n < XA_SLOTS && offset + n < XA_SLOTS; n *= 2)
			if (xa_slot(node, offset + n) != (u64)(offset << 2 | XA_INTERNAL))
				break;
		first = (((index >> shift) & ~(u64)(XA_SLOTS - 1)) | offset) << shift;
		end = first + ((u64)n << shift);
		if (first < p->first)
			p->first = first;
		if (end > p->end)
			p->end = end;
		return 0;
	}
	return 0;
}

#endif
