/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* System calls that open, close, read and write. */
#ifndef TRACEHINT_IO_BPF_H
#define TRACEHINT_IO_BPF_H

#include "mapped.bpf.h"

#define FALLOC_FL_PUNCH_HOLE 2
#define FALLOC_FL_COLLAPSE_RANGE 8
#define FALLOC_FL_ZERO_RANGE 16
#define FALLOC_FL_INSERT_RANGE 32
#define FICLONE 0x40049409
#define FICLONERANGE 0x4020940d
#define MAP_PRIVATE 2
#define MAP_TYPE 15
#define MAP_ANONYMOUS 32
#define MAP_DENYWRITE 2048 /* ld.so marks libraries with it */
#define VM_WRITE 2
#define VM_SHARED 8
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define CLOSE_RANGE_UNSHARE 2
#define CLOSE_RANGE_CLOEXEC 4

struct open_how {
	u64 flags;
};

struct clone_range {
	s64 src_fd;
	u64 src_offset, src_length, dest_offset;
};

static __always_inline void pipe_op(struct th_episode *ep, u32 op, u64 len)
{
	if (!ep->first_ns)
		ep->first_ns = bpf_ktime_get_boot_ns();
	ep->last_tick = now_tick();
	count_op(ep, op, ~0ULL, len);
}

/* `len` bytes moved on `fd` at `pos`; pos -1: up to where the file position is now. */
static __always_inline void moved(struct call *c, struct th_process *proc, u32 fd, u32 op_how,
				  s64 pos, u64 len)
{
	u64 file = fd_file(bpf_get_current_task_btf(), fd);
	struct th_episode *ep = episode_use(c, proc, fd, file);

	if (!ep)
		return;
	if (ep->state & TH_EP_PIPE) {
		pipe_op(ep, op_how & 0xff, len);
		return;
	}
	if (pos < 0)
		pos = K(struct file, file, f_pos) - len;
	run_add(ep, op_how, pos, len);
}

GLOBAL int moved_slow(struct call *c, u32 fd, u32 op_how, s64 pos, u64 len)
{
	struct th_process *proc;

	if (!c)
		return 0;
	proc = process_at(c->slot);
	if (proc)
		moved(c, proc, fd, op_how, pos, len);
	return 0;
}

/* A range that is known although nothing moved: mapped, truncated, deallocated. */
GLOBAL int touched(struct call *c, u32 fd, u32 op_how, u64 start, u64 len)
{
	u64 file = fd_file(bpf_get_current_task_btf(), fd), size;
	struct th_process *proc;
	struct th_episode *ep;

	if (!c)
		return 0;
	proc = process_at(c->slot);
	if (!proc)
		return 0;
	ep = episode_use(c, proc, fd, file);
	if (!ep || (ep->state & TH_EP_PIPE))
		return 0;
	if (((op_how >> 8) & 0xff) == TH_HOW_MMAP || op_how == OP(TH_READ, TH_HOW_AIO, 1)) {
		size = K(struct inode, ep->inode, i_size);
		if (start >= size)
			return 0;
		if (len > size - start)
			len = size - start;
	}
	run_add(ep, op_how, start, len);
	return 0;
}

static __always_inline void do_open(struct call *c, u64 flags)
{
	u64 file = fd_file(bpf_get_current_task_btf(), c->ret);
	struct th_process *proc = process_at(c->slot);
	struct th_episode *ep;

	if (!file || !proc)
		return;
	c->file = file;
	episode_begin(c, c->ret, 0, (u32)flags);
	ep = episode_at(proc, c->slot, c->ret);
	if (ep && !(ep->state & (TH_EP_IGNORED | TH_EP_PIPE)) && (ep->state & TH_EP_TRUNCATED))
		run_add(ep, OP(TH_TRUNCATE, TH_HOW_OPEN, 0), 0, 0);
}

/* Where a call left its offset argument; without one, the file position. -1: use that. */
static __always_inline s64 end_offset(u64 user, u64 moved_bytes)
{
	s64 end = 0;

	if (!user || bpf_probe_read_user(&end, sizeof(end), (void *)user))
		return -1;
	return end - moved_bytes;
}

/* The faults will tell which pages are touched. */
GLOBAL int map_fd(struct call *c, u32 fd, u32 written)
{
	u64 file = fd_file(bpf_get_current_task_btf(), fd);
	struct th_process *proc;

	if (!c)
		return 0;
	proc = process_at(c->slot);
	if (!proc || !file || !episode_use(c, proc, fd, file))
		return 0;
	map_begin(c, file, KEY_MAPPED);
	if (written) {
		map_begin(c, file, KEY_MAPPED | 1);
		proc->flags |= TH_PROC_MAPPED_WRITE;
	}
	return 0;
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
			proc->flags |= TH_PROC_MAPPED_WRITE;
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

struct vma_found {
	u64 file;
	u64 start;
	u64 flags;
};

static long vma_seen(struct task_struct *task, struct vm_area_struct *vma, struct vma_found *found)
{
	found->file = (u64)vma->vm_file;
	found->start = vma->vm_pgoff << PAGE_SHIFT;
	found->flags = vma->vm_flags;
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
	if (cfg.faults && len > FAULT_AROUND && !(flags & MAP_DENYWRITE)) {
		map_fd(c, fd, written);
		return;
	}
	if (prot & (PROT_READ | PROT_EXEC))
		touched(c, fd, OP(TH_READ, TH_HOW_MMAP, 1), offset, len);
	if (written)
		touched(c, fd, OP(TH_WRITE, TH_HOW_MMAP, 1), offset, len);
}

static __always_inline void do_fallocate(struct call *c, u64 offset, u64 len)
{
	u32 mode = c->arg[1];

	if (mode & FALLOC_FL_PUNCH_HOLE)
		touched(c, c->arg[0], OP(TH_DEALLOCATE, TH_HOW_FALLOCATE, 0), offset, len);
	else if (mode & (FALLOC_FL_ZERO_RANGE | FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE))
		touched(c, c->arg[0], OP(TH_WRITE, TH_HOW_FALLOCATE, 0), offset, len);
	/* other modes reserve space and change no byte */
}

static __always_inline void do_clone(struct call *c)
{
	u32 fd = c->arg[0], cmd = c->arg[1];
	struct clone_range range = {};
	u64 file, size;

	if (cmd == FICLONE)
		range.src_fd = c->arg[2];
	else if (cmd != FICLONERANGE ||
		 bpf_probe_read_user(&range, sizeof(range), (void *)c->arg[2]))
		return;
	file = fd_file(bpf_get_current_task_btf(), range.src_fd);
	if (!file)
		return;
	size = K(struct inode, file_inode(file), i_size);
	if (!range.src_length && range.src_offset < size)
		range.src_length = size - range.src_offset;
	moved_slow(c, range.src_fd, OP(TH_READ, TH_HOW_CLONE, 0), range.src_offset,
		   range.src_length);
	moved_slow(c, fd, OP(TH_WRITE, TH_HOW_CLONE, 0), range.dest_offset, range.src_length);
}

/* Descriptors of an interval are gone. Above the direct ones the check at first use notices. */
GLOBAL int do_close_range(struct call *c)
{
	u64 now = bpf_ktime_get_boot_ns();
	struct th_process *proc;
	u32 first, last, gone, fd;

	if (!c || (c->arg[2] & CLOSE_RANGE_CLOEXEC))
		return 0;
	proc = process_at(c->slot);
	first = c->arg[0];
	last = c->arg[1];
	if (!proc || first >= TH_DIRECT_FDS)
		return 0;
	gone = proc->used & ~((1U << (first & 31)) - 1);
	if (last < TH_DIRECT_FDS)
		gone &= (2U << (last & 31)) - 1;
	for (fd = 0; fd < TH_DIRECT_FDS; fd++)
		if (gone & (1U << fd))
			close_fd(c->slot, c->tid, fd, now);
	return 0;
}

/* include/uapi/linux/aio_abi.h */
struct aio_request {
	u64 data;
	u32 key, rw_flags;
	u16 opcode;
	s16 priority;
	u32 fd;
	u64 buffer, bytes;
	s64 offset;
};

#define AIO_PREAD 0
#define AIO_PWRITE 1
#define AIO_PREADV 7
#define AIO_PWRITEV 8
#define AIO_VECTORS 32
#define AIO_REQUESTS 4096

struct vector {
	u64 base, len;
};

static __always_inline u64 vectors_length(u64 at, u64 n)
{
	struct vector v;
	u64 sum = 0;
	u32 i;

	for (i = 0; i < AIO_VECTORS; i++) {
		if (i >= n || bpf_probe_read_user(&v, sizeof(v), (void *)(at + i * sizeof(v))))
			break;
		sum += v.len;
	}
	return sum;
}

/* Completions can be reaped without a call, so requests are counted: an upper bound. */
static long aio_step(u32 i, struct call *c)
{
	struct aio_request request;
	u64 at, len;
	u32 op;

	if (bpf_probe_read_user(&at, sizeof(at), (void *)(c->arg[2] + i * 8ULL)) ||
	    bpf_probe_read_user(&request, sizeof(request), (void *)at))
		return 1;
	if (request.opcode == AIO_PREAD || request.opcode == AIO_PREADV)
		op = OP(TH_READ, TH_HOW_AIO, 1);
	else if (request.opcode == AIO_PWRITE || request.opcode == AIO_PWRITEV)
		op = OP(TH_WRITE, TH_HOW_AIO, 1);
	else
		return 0;
	len = request.bytes;
	if (request.opcode >= AIO_PREADV)
		len = vectors_length(request.buffer, request.bytes);
	touched(c, request.fd, op, request.offset, len);
	return 0;
}

GLOBAL int do_io_submit(struct call *c)
{
	struct call copy;

	if (!c || c->ret <= 0)
		return 0;
	copy = *c;
	th_loop(copy.ret > AIO_REQUESTS ? AIO_REQUESTS : copy.ret, aio_step, &copy, 0);
	return 0;
}

#endif
