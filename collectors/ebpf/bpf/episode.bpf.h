/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Open episodes: one per process epoch and descriptor, found without a search for small
 * descriptors. An episode is valid only while the descriptor still refers to the same struct file,
 * so a missed close has no effect.
 */
#ifndef TRACEHINT_EPISODE_BPF_H
#define TRACEHINT_EPISODE_BPF_H

#include "path.bpf.h"
#include "run.bpf.h"

/* The current system call of a followed process. */
struct call {
	u32 slot;
	u32 tid; /* 0 for the main thread, which uses the process's own episodes */
	u64 arg[6];
	s64 ret;
	u64 file; /* for episode_begin */
};

static __always_inline struct th_episode *direct_at(u32 slot, u32 fd)
{
	u32 i = slot * TH_DIRECT_FDS + fd;

	return bpf_map_lookup_elem(&direct_episodes, &i);
}

static __always_inline struct th_episode *hashed_at(u32 epoch, u32 fd, u32 tid)
{
	struct fd_key key = {.epoch = epoch, .fd = fd, .tid = tid};

	return bpf_map_lookup_elem(&hashed_episodes, &key);
}

static __always_inline struct th_episode *hashed_new(struct th_process *proc, u32 fd, u32 tid,
						     struct th_episode *from)
{
	struct fd_key key = {.epoch = proc->epoch, .fd = fd, .tid = tid};

	if (bpf_map_update_elem(&hashed_episodes, &key, from, BPF_ANY)) {
		lose(proc, TH_LOST_TABLE, 1);
		return NULL;
	}
	proc->hashed = 1;
	return bpf_map_lookup_elem(&hashed_episodes, &key);
}

/* The process's own episode of a descriptor, in any state; NULL if there is none. */
static __always_inline struct th_episode *episode_at(struct th_process *proc, u32 slot, u32 fd)
{
	if (fd < TH_DIRECT_FDS)
		return direct_at(slot, fd);
	return hashed_at(proc->epoch, fd, 0);
}

#define WAITS 50000 /* iterations, of some ns each, to wait for another processor */

/*
 * Send the summary and free the entry, once: two threads may end the same episode. `now` is 0 if
 * only the end of the epoch is known.
 */
GLOBAL int episode_end(struct th_episode *ep, u32 slot, u64 now)
{
	u32 before;

	if (!ep)
		return 0;
	before = ep->state;
	if (!(before & TH_EP_LIVE) ||
	    __sync_val_compare_and_swap(&ep->state, before,
					(before & ~TH_EP_LIVE) | TH_EP_ENDING) != before)
		return 0;
	if (!(before & TH_EP_IGNORED)) {
		ep->kind = TH_EPISODE;
		ep->close_ns = now;
		ep->nlink = K(struct inode, ep->inode, i_nlink);
		ep->size_close = K(struct inode, ep->inode, i_size);
		send(process_at(slot), ep, sizeof(*ep), 0);
	}
	ep->state = 0;
	return 0;
}

/*
 * The descriptor is closed, or `replaced` by another one. Its number is free before its close
 * returns, and another thread may have reused it: then the entry belongs to the new file, whose
 * open ended the previous episode.
 */
GLOBAL int close_fd(u32 slot, u32 tid, u32 fd, u32 replaced)
{
	struct th_process *proc = process_at(slot);
	struct th_episode *ep;
	struct fd_key key = {.fd = fd, .tid = tid};
	u64 now;

	if (!proc)
		return 0;
	now = moment_of(proc);
	key.epoch = proc->epoch;
	if (proc->hashed && tid) {
		struct th_episode *part = hashed_at(proc->epoch, fd, tid);

		if (part) {
			episode_end(part, slot, now);
			bpf_map_delete_elem(&hashed_episodes, &key);
		}
	}
	ep = episode_at(proc, slot, fd);
	if (!ep || !(ep->state & TH_EP_LIVE))
		return 0;
	if (!replaced) {
		u64 file = fd_file(bpf_get_current_task_btf(), fd);

		if (file && ep->file == file)
			return 0;
	}
	if (fd < TH_DIRECT_FDS)
		__sync_fetch_and_and(&proc->used, ~(1U << fd));
	episode_end(ep, slot, now); /* last: afterwards another thread may start one here */
	return 0;
}

/* Set the file's identity; `state` says whether it is a pipe or ignored. */
static __always_inline void episode_identify(struct th_episode *ep, u64 file)
{
	u64 inode = file_inode(file), sb = (u64)K(struct inode, inode, i_sb);
	u32 type, i;

	ep->file = file;
	ep->inode = inode;
	ep->mode = K(struct inode, inode, i_mode);
	type = ep->mode & S_IFMT;
	ep->ino = K(struct inode, inode, i_ino);
	ep->generation = K(struct inode, inode, i_generation);
	ep->dev = K(struct super_block, sb, s_dev);
	ep->magic = K(struct super_block, sb, s_magic);
	ep->flags = K(struct file, file, f_flags);
	if (type == S_IFIFO) {
		ep->state |= TH_EP_PIPE;
		return;
	}
	ep->size_open = K(struct inode, inode, i_size);
	if (type != S_IFREG || (ep->flags & O_PATH) || internal_mount(file)) {
		ep->state |= TH_EP_IGNORED;
		return;
	}
	for (i = 0; i < TH_MAX_MAGIC; i++) {
		if (!cfg.magics[i])
			break;
		if (cfg.magics[i] == ep->magic) {
			ep->state |= TH_EP_IGNORED;
			return;
		}
	}
}

struct place {
	u32 slot, epoch, fd;
};

static long has_ended(u32 i, struct place *at)
{
	struct th_episode *ep = at->fd < TH_DIRECT_FDS ? direct_at(at->slot, at->fd)
						       : hashed_at(at->epoch, at->fd, 0);

	return !ep || !(*(volatile u32 *)&ep->state & TH_EP_ENDING);
}

/* Begin an episode for c->file at `fd`, replacing any other one. */
GLOBAL int episode_begin(struct call *c, u32 fd, u32 begin_state, u32 open_flags)
{
	u32 user = SCRATCH_EXIT, n;
	struct th_process *proc;
	struct th_episode *ep;
	struct place at;
	bool fresh;
	u64 file;

	if (!c)
		return 0;
	file = c->file;
	proc = process_at(c->slot);
	if (!proc)
		return 0;
	at.slot = c->slot;
	at.epoch = proc->epoch;
	at.fd = fd;
	ep = episode_at(proc, c->slot, fd);
	if (ep && (ep->state & TH_EP_LIVE))
		close_fd(c->slot, c->tid, fd, 1);
	if (ep && (ep->state & TH_EP_ENDING))
		bpf_loop(WAITS, has_ended, &at, 0);
	fresh = !ep;
	if (fresh)
		ep = bpf_map_lookup_elem(&scratches, &user);
	if (!ep)
		return 0;
	__builtin_memset(ep, 0, sizeof(*ep));
	n = __sync_fetch_and_add(&proc->opens, 1);
	ep->open_id = (u64)proc->epoch << 32 | n;
	ep->epoch = proc->epoch;
	ep->fd = fd;
	ep->open_ns = moment_of(proc);
	ep->next = ~0ULL;
	ep->state = begin_state;
	episode_identify(ep, file);
	if (!(ep->state & TH_EP_INHERITED)) {
		if ((K(struct file, file, f_mode) & FMODE_CREATED) || (open_flags & O_TMPFILE_BIT))
			ep->state |= TH_EP_CREATED;
		else if (open_flags & O_TRUNC) /* also with O_RDONLY */
			ep->state |= TH_EP_TRUNCATED;
		ep->flags |= open_flags;
	}
	if (fd < TH_DIRECT_FDS)
		__sync_fetch_and_or(&proc->used, 1U << fd);
	else if (fresh)
		ep = hashed_new(proc, fd, 0, ep); /* frees the scratch area for the path */
	if (!ep)
		return 0;
	if (!(ep->state & (TH_EP_IGNORED | TH_EP_PIPE)))
		ep->path = file_path(file, SCRATCH_EXIT, c->slot);
	ep->state |= TH_EP_LIVE; /* last: a late close compares the file */
	return 0;
}

/* Make `fresh` an empty share of an episode. */
static __always_inline void share_of(struct th_episode *fresh, struct th_episode *from)
{
	__builtin_memcpy(fresh, from, sizeof(*fresh));
	fresh->state &= ~(TH_EP_CREATED | TH_EP_TRUNCATED);
	fresh->state |= TH_EP_PARTIAL;
	fresh->read_ops = fresh->read_bytes = fresh->write_ops = fresh->write_bytes = 0;
	fresh->seq_ops = fresh->small_ops = fresh->lost_ops = fresh->first_ns = 0;
	fresh->next = ~0ULL;
	fresh->run_seq = 0;
	fresh->outer.ops = fresh->inner.ops = 0;
	fresh->outer.last_ns = fresh->inner.last_ns = 0;
}

/* Begin this thread's share of an episode that several threads use. */
GLOBAL int share_begin(struct th_episode *own, u32 slot, u32 tid)
{
	struct th_process *proc = process_at(slot);
	u32 user = SCRATCH_EXIT;
	struct th_episode *part, *fresh = bpf_map_lookup_elem(&scratches, &user);

	if (!fresh || !own || !proc)
		return 0;
	part = hashed_at(own->epoch, own->fd, tid);
	if (part)
		episode_end(part, slot, 0);
	share_of(fresh, own);
	fresh->tid = tid;
	hashed_new(proc, own->fd, tid, fresh);
	return 0;
}

/* The episode of an operation on `fd`; NULL if the file is not recorded. */
static __always_inline struct th_episode *episode_use(struct call *c, struct th_process *proc,
						      u32 fd, u64 file)
{
	struct th_episode *ep = episode_at(proc, c->slot, fd), *part;

	if (!ep || !(ep->state & TH_EP_LIVE) || ep->file != file || ep->inode != file_inode(file)) {
		if (!file)
			return NULL;
		c->file = file;
		episode_begin(c, fd, TH_EP_INHERITED, 0);
		ep = episode_at(proc, c->slot, fd);
	}
	if (!ep || (ep->state & TH_EP_IGNORED) || !c->tid)
		return ep && (ep->state & TH_EP_IGNORED) ? NULL : ep;
	part = hashed_at(ep->epoch, fd, c->tid);
	if (part && part->open_id == ep->open_id)
		return part;
	share_begin(ep, c->slot, c->tid);
	return hashed_at(ep->epoch, fd, c->tid);
}

#endif
