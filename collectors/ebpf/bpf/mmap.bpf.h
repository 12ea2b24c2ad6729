/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The system calls that map files. */
#ifndef TRACEHINT_MMAP_BPF_H
#define TRACEHINT_MMAP_BPF_H

#include "io.bpf.h"
#include "mapped.bpf.h"

#define MADV_POPULATE_WRITE 23
#define MAP_PRIVATE 2
#define MAP_TYPE 15
#define MAP_ANONYMOUS 32
#define MAP_DENYWRITE 2048 /* ld.so marks libraries with it */
#define PROT_READ 1
#define OVERLAYFS_MAGIC 0x794c7630
#define PROT_WRITE 2
#define PROT_EXEC 4

/* Follow the faults of a mapping, which show the accessed pages; 0: record its range instead. */
GLOBAL int map_fd(struct call *c, u32 fd, u32 written)
{
	u64 file = fd_file(bpf_get_current_task_btf(), fd);
	struct th_process *proc;
	struct th_episode *ep;

	if (!c)
		return 0;
	proc = process_at(c->slot);
	if (!proc || !file)
		return 0;
	ep = episode_use(c, proc, fd, file);
	if (!ep || ep->magic == OVERLAYFS_MAGIC)
		return 0; /* overlayfs maps another inode: record the range */
	map_begin(c, file, KEY_MAPPED);
	if (written) {
		map_begin(c, file, KEY_MAPPED | 1);
		writes_begin(proc);
	}
	return 1;
}

GLOBAL int remapped(struct call *c, u64 start, u64 len, u32 written)
{
	struct find f = {};
	struct th_process *proc;
	struct th_episode *ep;
	u64 size;

	if (!c)
		return 0;
	proc = process_at(c->slot);
	if (!proc)
		return 0;
	if (cfg.faults) {
		map_begin(c, c->file, KEY_MAPPED);
		if (written) {
			map_begin(c, c->file, KEY_MAPPED | 1);
			writes_begin(proc);
		}
	}
	/* pages already mapped do not fault again: record the range as well */
	f.file = c->file;
	f.slot = c->slot;
	f.inode = file_inode(c->file);
	find_key(&f, KEY_MAPPED);
	if (!hashed_at(proc->epoch, f.key, 0))
		share_make(&f);
	ep = hashed_at(proc->epoch, f.key, 0);
	size = K(struct inode, f.inode, i_size);
	if (!ep || start >= size)
		return 0;
	if (len > size - start)
		len = size - start;
	run_add(proc, ep, OP(TH_READ, TH_HOW_MMAP, 1), start, len);
	if (written)
		run_add(proc, ep, OP(TH_WRITE, TH_HOW_MMAP, 1), start, len);
	return 0;
}

/* A grown mapping of a file, found by the mapping as there is no descriptor. 1: not found. */
GLOBAL int do_mremap(struct call *c)
{
	struct vma_found found = {};
	struct spans *mapped;

	if (!c)
		return 0;
	found.at = c->ret;
	mapped = spans_at(c->slot);
	if (!mapped || !span_has(&mapped->files, c->arg[0]))
		return 0;
	spans_add(c->slot, c->ret, c->arg[2], span_has(&mapped->writable, c->arg[0]));
	if (c->arg[2] <= c->arg[1])
		return 0;
	if (th_find_vma(bpf_get_current_task_btf(), c->ret, vma_seen, &found, 0) == -EBUSY)
		return 1;
	if (!found.file)
		return 0;
	c->file = found.file;
	return remapped(c, found.at, c->arg[2],
			(found.flags & VM_SHARED) && (found.flags & VM_WRITE));
}

/*
 * Part of a mapping may be written from now on (mprotect), or without a fault (`populated`). 1:
 * unknown, as another thread was changing the mappings.
 */
GLOBAL int writable(struct call *c, u32 populated)
{
	u64 id = bpf_get_current_pid_tgid(), start, end, size;
	struct vma_found found = {};
	struct spans *mapped;
	struct th_process *proc;
	struct find f = {};

	if (!c)
		return 0;
	found.at = c->arg[0];
	mapped = spans_at(c->slot);
	if (!mapped || !span_has(&mapped->writable, c->arg[0]))
		return 0;
	if (th_find_vma(bpf_get_current_task_btf(), c->arg[0], vma_seen, &found, 0) == -EBUSY)
		return 1;
	proc = process_at(c->slot);
	if (!proc || !found.file || !(found.flags & VM_SHARED))
		return 0;
	f.file = found.file;
	f.slot = c->slot;
	f.inode = file_inode(found.file);
	find_key(&f, KEY_MAPPED | 1);
	if (!hashed_at(proc->epoch, f.key, 0))
		share_make(&f);
	mapped_begin(proc, 0);
	writes_begin(proc);
	f.tid = (u32)id == (u32)(id >> 32) ? 0 : (u32)id;
	if (cfg.faults && !populated && !writes_unseen(proc, f.inode))
		return 0;
	start = found.at;
	end = start + c->arg[1];
	size = K(struct inode, f.inode, i_size);
	if (start < size)
		touched_pages(&f, proc, KEY_MAPPED | 1, start, end < size ? end : size);
	return 0;
}

/* Note the mapped addresses; `later`: writes may follow, if the file is open for writing. */
GLOBAL int map_place(struct call *c, u32 fd, u32 later)
{
	u64 file = fd_file(bpf_get_current_task_btf(), fd);

	if (!c)
		return 0;
	if (!file || (K(struct inode, file_inode(file), i_mode) & S_IFMT) == S_IFREG)
		spans_add(c->slot, c->ret, c->arg[1],
			  later && (!file || (K(struct file, file, f_mode) & FMODE_WRITE)));
	return 0;
}

static __always_inline void do_mmap(struct call *c, u64 offset)
{
	u64 len = c->arg[1], prot = c->arg[2], flags = c->arg[3];
	u32 fd = c->arg[4];

	bool shared = (flags & MAP_TYPE) != MAP_PRIVATE, written = shared && (prot & PROT_WRITE);
	bool read = prot & (PROT_READ | PROT_EXEC), followed;

	if (flags & MAP_ANONYMOUS)
		return;
	followed = cfg.faults && (len > FAULT_AROUND || !read) && !(flags & MAP_DENYWRITE) &&
		   map_fd(c, fd, written);
	if (shared || !(flags & MAP_DENYWRITE))
		map_place(c, fd, shared && (followed || !written));
	if (followed)
		return;
	touched(c, fd, OP(TH_READ, TH_HOW_MMAP, 1), offset,
		len); /* mprotect may make it readable */
	if (written)
		touched(c, fd, OP(TH_WRITE, TH_HOW_MMAP, 1), offset, len);
}

#endif
