/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Accesses without a descriptor: io_uring completions and page faults refer to a file or an inode.
 * Each has its own episode in the hash table, which is a share of the descriptor's if one is open.
 */
#ifndef TRACEHINT_SHARE_BPF_H
#define TRACEHINT_SHARE_BPF_H

#include "episode.bpf.h"

#define KEY_URING 0x80000000U
#define KEY_MAPPED 0xc0000000U /* bit 0: the pages are written */

struct find {
	u64 file;
	u64 inode;
	u32 slot;
	u32 key;
	u32 tid;
	u32 spare;
};

/* The key of f->file for io_uring, of f->inode for mappings. */
GLOBAL int find_key(struct find *f, u32 kind)
{
	u64 object;

	if (!f)
		return 0;
	object = kind == KEY_URING ? f->file : f->inode;
	f->key = kind | ((u32)(object >> 4) * 2654435761U >> 4 << 1);
	return 0;
}

/* The open episode of the process with the same struct file, among the direct ones. */
static __always_inline struct th_episode *episode_of_file(struct th_process *proc, u32 slot,
							  u64 file)
{
	struct th_episode *ep;
	u32 fd;

	for (fd = 0; fd < TH_DIRECT_FDS; fd++) {
		if (!(proc->used & (1U << fd)))
			continue;
		ep = direct_at(slot, fd);
		if (ep && (ep->state & TH_EP_LIVE) && ep->file == file)
			return ep;
	}
	return NULL;
}

/* Make the share for f->file under f->key; the caller looks it up afterwards. */
GLOBAL int share_make(struct find *f)
{
	u32 user = SCRATCH_SHARE;
	struct th_episode *fresh = bpf_map_lookup_elem(&scratches, &user), *open;
	struct th_process *proc;
	u32 n;

	if (!f || !fresh)
		return 0;
	proc = process_at(f->slot);
	if (!proc)
		return 0;
	open = episode_of_file(proc, f->slot, f->file);
	if (open) {
		share_of(fresh, open);
	} else {
		__builtin_memset(fresh, 0, sizeof(*fresh));
		n = __sync_fetch_and_add(&proc->opens, 1);
		fresh->open_id = (u64)proc->epoch << 32 | n;
		fresh->epoch = proc->epoch;
		fresh->open_ns = bpf_ktime_get_boot_ns();
		fresh->next = ~0ULL;
		fresh->state = TH_EP_LIVE | TH_EP_INHERITED;
		episode_identify(fresh, f->file);
	}
	fresh->fd = f->key;
	fresh->tid = f->tid;
	open = hashed_new(proc, f->key, f->tid, fresh);
	if (open && !open->path && !(open->state & (TH_EP_IGNORED | TH_EP_PIPE)))
		open->path = file_path(f->file, SCRATCH_SHARE, f->slot);
	return 0;
}

#endif
