/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The system calls that map files. */
#ifndef TRACEHINT_MMAP_BPF_H
#define TRACEHINT_MMAP_BPF_H

#include "io.bpf.h"
#include "mapped.bpf.h"

#define MAP_PRIVATE 2
#define MAP_TYPE 15
#define MAP_ANONYMOUS 32
#define MAP_DENYWRITE 2048 /* ld.so marks libraries with it */
#define PROT_READ 1
#define OVERLAYFS_MAGIC 0x794c7630
#define PROT_WRITE 2
#define PROT_EXEC 4

/* The faults will tell which pages are touched. */
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
		return 0; /* overlayfs maps another inode: the range will have to do */
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
	/* pages that are there already do not fault again: record the range as well */
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
	run_add(ep, OP(TH_READ, TH_HOW_MMAP, 1), start, len);
	if (written)
		run_add(ep, OP(TH_WRITE, TH_HOW_MMAP, 1), start, len);
	return 0;
}

/* A grown mapping of a file: without its descriptor, so through the mapping itself. */
GLOBAL int do_mremap(struct call *c)
{
	struct vma_found found = {};

	if (!c || c->arg[2] <= c->arg[1])
		return 0;
	th_find_vma(bpf_get_current_task_btf(), c->ret, vma_seen, &found, 0);
	if (!found.file)
		return 0;
	c->file = found.file;
	return remapped(c, found.start, c->arg[2],
			(found.flags & VM_SHARED) && (found.flags & VM_WRITE));
}

static __always_inline void do_mmap(struct call *c, u64 offset)
{
	u64 len = c->arg[1], prot = c->arg[2], flags = c->arg[3];
	u32 fd = c->arg[4];

	bool written = (flags & MAP_TYPE) != MAP_PRIVATE && (prot & PROT_WRITE);

	if (flags & MAP_ANONYMOUS)
		return;
	if (cfg.faults && len > FAULT_AROUND && !(flags & MAP_DENYWRITE) && map_fd(c, fd, written))
		return;
	if (prot & (PROT_READ | PROT_EXEC))
		touched(c, fd, OP(TH_READ, TH_HOW_MMAP, 1), offset, len);
	if (written)
		touched(c, fd, OP(TH_WRITE, TH_HOW_MMAP, 1), offset, len);
}

#endif
