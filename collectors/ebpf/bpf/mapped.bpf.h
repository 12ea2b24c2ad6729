/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Pages accessed through a mapping, if the kernel has tracepoints for faults on files (Linux 6.12)
 * and of the processor (x86). Without them, and for mappings no larger than the pages mapped by one
 * fault, the mapped range is recorded: an upper bound either way.
 */
#ifndef TRACEHINT_MAPPED_BPF_H
#define TRACEHINT_MAPPED_BPF_H

#include "folio.bpf.h"
#include "share.bpf.h"
#include "spans.bpf.h"

#define EBUSY 16
#define FAULT_AROUND 65536
#define PAGE_SHIFT 12 /* of x86 */
#define PAGE_SIZE 4096ULL
#define PMD_PAGES 512
#define VM_WRITE 2
#define VM_SHARED 8
#define TMPFS_MAGIC 0x01021994
#define RAMFS_MAGIC 0x858458f6
#define HUGETLBFS_MAGIC 0x958458f6

static __always_inline void mapped_begin(struct th_process *proc, u32 more)
{
	proc->flags |= TH_PROC_MAPPED | more;
	__sync_fetch_and_or(&state.mapped, TH_PROC_MAPPED | more);
}

/* Whether the call, mmap or mremap, makes a mapping of that many bytes. */
static __always_inline bool is_large(struct call *c)
{
	return c->arg[1] >= PMD_PAGES * PAGE_SIZE || c->arg[2] >= PMD_PAGES * PAGE_SIZE;
}

/* Follow faults on `file`; `kind` selects pages that are read or written. */
static __always_inline void map_begin(struct call *c, u64 file, u32 kind)
{
	struct find f = {.file = file, .slot = c->slot};
	struct th_process *proc = process_at(c->slot);

	if (!proc || !file)
		return;
	f.inode = file_inode(file);
	find_key(&f, kind);
	if (!hashed_at(proc->epoch, f.key, 0))
		share_make(&f);
	mapped_begin(proc, is_large(c) ? TH_PROC_MAPPED_LARGE : 0);
}

/* Begin this thread's share for pages of an inode, from its process or, after forks, ancestors. */
GLOBAL int map_share(struct find *f)
{
	u32 user = SCRATCH_SHARE, n, i;
	struct th_episode *fresh = bpf_map_lookup_elem(&scratches, &user), *from;
	struct th_process *proc;

	if (!f || !fresh)
		return 0;
	proc = process_at(f->slot);
	if (!proc)
		return 0;
	from = hashed_at(proc->epoch, f->key, 0);
	if (from) {
		share_of(fresh, from);
	} else {
		for (i = 0; !from && i < TH_ANCESTORS && proc->ancestors[i]; i++)
			from = hashed_at(proc->ancestors[i], f->key, 0);
		if (!from)
			return 0;
		share_of(fresh, from);
		n = __sync_fetch_and_add(&proc->opens, 1);
		fresh->state = TH_EP_LIVE | TH_EP_INHERITED;
		fresh->open_id = (u64)proc->epoch << 32 | n;
		fresh->epoch = proc->epoch;
		fresh->open_ns = bpf_ktime_get_boot_ns();
	}
	fresh->fd = f->key;
	fresh->tid = f->tid;
	hashed_new(proc, f->key, f->tid, fresh);
	return 0;
}

static __always_inline void touched_pages(struct find *f, struct th_process *proc, u32 kind,
					  u64 start, u64 end)
{
	struct th_episode *ep;

	find_key(f, kind);
	ep = hashed_at(proc->epoch, f->key, f->tid);
	if (!ep) {
		map_share(f);
		ep = hashed_at(proc->epoch, f->key, f->tid);
	}
	if (ep && ep->inode == f->inode)
		run_add(proc, ep, OP(kind & 1 ? TH_WRITE : TH_READ, TH_HOW_MMAP, 1), start,
			end - start);
}

/*
 * Whether mapped-in pages may be written without another fault: file systems without write-back map
 * them writable at once.
 */
static __always_inline bool writes_unseen(struct th_process *proc, u64 inode)
{
	u64 sb = (u64)K(struct inode, inode, i_sb);
	u32 magic = K(struct super_block, sb, s_magic);

	return (proc->flags & TH_PROC_WRITES_UNSEEN) || magic == TMPFS_MAGIC ||
	       magic == RAMFS_MAGIC || magic == HUGETLBFS_MAGIC;
}

static __always_inline void writes_begin(struct th_process *proc)
{
	proc->flags |= TH_PROC_MAPPED_WRITE;
	__sync_fetch_and_or(&state.mapped, TH_PROC_MAPPED_WRITE);
}

struct vma_found {
	u64 file;
	u64 at; /* the address to look up, then its offset in the file */
	u64 flags;
};

static long vma_seen(struct task_struct *task, struct vm_area_struct *vma, struct vma_found *found)
{
	found->file = (u64)vma->vm_file;
	found->at = (vma->vm_pgoff << PAGE_SHIFT) + (found->at - vma->vm_start);
	found->flags = vma->vm_flags;
	return 0;
}

/* bits of the processor's error code */
#define PF_PROT 1 /* the page is mapped, but not for this access */
#define PF_WRITE 2

/* Set `p` to the pages that a fault at one of them maps: those of its folio, if there is one. */
static __always_inline void mapped_pages(struct pages *p, u64 inode, u64 page, u64 error)
{
	p->mapping = (u64)K(struct inode, inode, i_mapping);
	p->first = page;
	p->end = page + 1;
	whole_folio(p, page);
	if ((error & PF_PROT) && p->end - p->first < PMD_PAGES) {
		p->first = page; /* made writable alone; a larger one is unmapped and remapped */
		p->end = page + 1;
	}
}

/* Keep a write fault for the process's next fault or call: another thread is changing mappings. */
static __always_inline void write_keep(struct th_process *proc, struct spans *spans, u64 fault)
{
	u64 old;
	u32 i;

	for (i = 0; i < WRITES_KEPT; i++) {
		old = __sync_val_compare_and_swap(&spans->kept[i], 0, fault);
		if (!old || old == fault) {
			proc->writes_kept = 1;
			return;
		}
	}
	write_lose(proc, spans);
}

/* Find the file of a fault and record its pages; `again`: the fault was kept. */
GLOBAL int fault_place(u32 slot, u64 address, u64 error, u32 again)
{
	u64 id = bpf_get_current_pid_tgid(), size, start, end;
	struct th_process *proc = process_at(slot);
	struct spans *spans = spans_at(slot);
	struct find f = {.slot = slot};
	struct vma_found found = {.at = address};
	struct pages p = {};
	long missed;

	if (!proc || !spans)
		return 0;
	missed = th_find_vma(bpf_get_current_task_btf(), address, vma_seen, &found, 0);
	if (missed == -EBUSY && (error & PF_WRITE) && span_has(&spans->writable, address))
		write_keep(proc, spans, (address & ~(PAGE_SIZE - 1)) | error);
	else if (missed && again)
		write_lose(proc, spans); /* unmapped since */
	if (missed || !found.file)
		return 0;
	f.tid = (u32)id == (u32)(id >> 32) ? 0 : (u32)id;
	f.inode = file_inode(found.file);
	size = K(struct inode, f.inode, i_size);
	mapped_pages(&p, f.inode, found.at >> PAGE_SHIFT, error);
	start = p.first << PAGE_SHIFT;
	end = p.end << PAGE_SHIFT;
	if (start >= size)
		return 0;
	if (end > size)
		end = size;
	if (!(error & PF_PROT))
		touched_pages(&f, proc, KEY_MAPPED, start, end);
	if ((found.flags & VM_SHARED) && (found.flags & VM_WRITE) &&
	    ((error & PF_WRITE) || writes_unseen(proc, f.inode)))
		touched_pages(&f, proc, KEY_MAPPED | 1, start, end);
	return 0;
}

GLOBAL int writes_place(u32 slot)
{
	struct th_process *proc = process_at(slot);
	struct spans *spans = spans_at(slot);
	u64 fault;
	u32 i;

	if (!proc || !spans)
		return 0;
	proc->writes_kept = 0;
	for (i = 0; i < WRITES_KEPT; i++) {
		fault = __sync_lock_test_and_set(&spans->kept[i], 0);
		if (fault)
			fault_place(slot, fault & ~(PAGE_SIZE - 1), fault & (PF_PROT | PF_WRITE),
				    1);
	}
	return 0;
}

/*
 * A page fault: the page is not mapped yet, or it is a write to a shared mapping whose file system
 * tracks the first write to each clean page. Later writes, until the page is written back, are to
 * the same pages. Reads have their own tracepoints, except if a folio is mapped by one upper page
 * table entry: only then they are handled here, as finding the mapping takes 500 ns.
 */
static __always_inline void processor_fault(u64 address, u64 error)
{
	u32 want = error & PF_WRITE ? TH_PROC_MAPPED_WRITE : TH_PROC_MAPPED_LARGE, slot;
	struct th_process *proc;
	struct spans *spans;

	if (!(state.mapped & want) || (error & (PF_WRITE | PF_PROT)) == PF_PROT)
		return; /* most faults of most runs */
	slot = slot_of((u32)bpf_get_current_pid_tgid());
	if (!slot)
		return;
	proc = process_at(slot);
	if (!proc || !(proc->flags & want) || proc->state != TH_LIVE)
		return;
	if (proc->writes_kept)
		writes_place(slot);
	spans = spans_at(slot);
	if (spans && span_has(&spans->files, address))
		fault_place(slot, address, error & (PF_PROT | PF_WRITE), 0);
}

static __always_inline void fault(u64 mapping, u64 first, u64 last)
{
	u64 id = bpf_get_current_pid_tgid(), size;
	struct find f = {.slot = slot_of((u32)id)};
	struct th_process *proc;
	struct pages p = {};

	if (!f.slot)
		return;
	proc = process_at(f.slot);
	if (!proc || !(proc->flags & TH_PROC_MAPPED) || proc->state != TH_LIVE)
		return;
	f.tid = (u32)id == (u32)(id >> 32) ? 0 : (u32)id;
	f.inode = (u64)K(struct address_space, mapping, host);
	size = K(struct inode, f.inode, i_size);
	p.mapping = mapping;
	p.first = first;
	p.end = last + 1;
	whole_folio(&p, first);
	whole_folio(&p, last);
	first = p.first << PAGE_SHIFT;
	last = p.end << PAGE_SHIFT;
	if (first >= size)
		return;
	if (last > size)
		last = size;
	touched_pages(&f, proc, KEY_MAPPED, first, last);
	if ((proc->flags & TH_PROC_MAPPED_WRITE) && writes_unseen(proc, f.inode))
		touched_pages(&f, proc, KEY_MAPPED | 1, first, last);
}

#endif
