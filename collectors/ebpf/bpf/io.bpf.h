/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* System calls that open, close, read and write. */
#ifndef TRACEHINT_IO_BPF_H
#define TRACEHINT_IO_BPF_H

#include "episode.bpf.h"

#define FALLOC_FL_PUNCH_HOLE 2
#define FALLOC_FL_COLLAPSE_RANGE 8
#define FALLOC_FL_ZERO_RANGE 16
#define FALLOC_FL_INSERT_RANGE 32
#define RWF_APPEND 16
#define RWF_NOAPPEND 32
#define FICLONE 0x40049409
#define FICLONERANGE 0x4020940d
#define LOOP_SET_FD 0x4c00
#define LOOP_CHANGE_FD 0x4c06
#define LOOP_CONFIGURE 0x4c0a
#define XFS_IOC_SWAPEXT 0xc0c0586d
#define XFS_IOC_EXCHANGE_RANGE 0x40285881
#define EXT4_IOC_MOVE_EXT 0xc028660f
#define CLOSE_RANGE_CLOEXEC 4

struct clone_range {
	s64 src_fd;
	u64 src_offset, src_length, dest_offset;
};

static __always_inline void pipe_op(struct th_process *proc, struct th_episode *ep, u32 op, u64 len)
{
	if (!ep->first_ns)
		ep->first_ns = moment_of(proc);
	run_touch(proc, &ep->inner);
	count_op(ep, op, ~0ULL, len);
}

/* `len` bytes moved on `fd` at `pos`; pos -1: the bytes before the current file position. */
static __always_inline void moved(struct call *c, struct th_process *proc, u32 fd, u32 op_how,
				  s64 pos, u64 len)
{
	u64 file = fd_file(bpf_get_current_task_btf(), fd);
	struct th_episode *ep = episode_use(c, proc, fd, file);

	if (!ep)
		return;
	if (ep->state & TH_EP_PIPE) {
		pipe_op(proc, ep, op_how & 0xff, len);
		return;
	}
	if (pos < 0)
		pos = K(struct file, file, f_pos) - len;
	run_add(proc, ep, op_how, pos, len);
}

/* Offset of a positioned write: with O_APPEND the end of the file, whatever the argument. */
static __always_inline s64 written_at(struct call *c, u64 nr)
{
	u64 file = fd_file(bpf_get_current_task_btf(), c->arg[0]);
	u32 how = nr == CALL_PWRITEV2 || nr == CALL_PWRITEV2_32 ? c->arg[5] : 0;
	s64 at = c->arg[3];

	if (!file || at < 0 || (how & RWF_NOAPPEND))
		return at;
	if ((how & RWF_APPEND) || (K(struct file, file, f_flags) & O_APPEND))
		return K(struct inode, file_inode(file), i_size) - c->ret;
	return at;
}

/* For rarer calls: not inlined, which costs 20 ns. */
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

/* Record a range without a transfer of bytes: mapped, truncated, deallocated. */
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
	run_add(proc, ep, op_how, start, len);
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
		run_add(proc, ep, OP(TH_TRUNCATE, TH_HOW_OPEN, 0), 0, 0);
}

/* Start offset of a call, from the offset that it updated; -1: it used the file position. */
static __always_inline s64 end_offset(u64 user, u64 moved_bytes)
{
	s64 end = 0;

	if (!user || bpf_probe_read_user(&end, sizeof(end), (void *)user))
		return -1;
	return end - moved_bytes;
}

/* The bytes after the range were moved within the file; `size` is the size after the call. */
static __always_inline void shifted(struct call *c, u64 offset, u64 len, bool inserted)
{
	u64 file = fd_file(bpf_get_current_task_btf(), c->arg[0]), size;
	u64 from = inserted ? offset : offset + len, to = inserted ? offset + len : offset;

	if (!file)
		return;
	size = K(struct inode, file_inode(file), i_size);
	if (size <= to)
		return;
	touched(c, c->arg[0], OP(TH_READ, TH_HOW_FALLOCATE, 0), from, size - to);
	touched(c, c->arg[0], OP(TH_WRITE, TH_HOW_FALLOCATE, 0), to, size - to);
	if (inserted)
		touched(c, c->arg[0], OP(TH_DEALLOCATE, TH_HOW_FALLOCATE, 0), offset, len);
}

/* Not within data_calls: the whole stack has 512 bytes. */
GLOBAL int do_fallocate(struct call *c)
{
	u64 offset, len;
	u32 mode;

	if (!c || c->ret)
		return 0;
	mode = c->arg[1];
	offset = c->arg[2];
	len = c->arg[3];
	if (mode & FALLOC_FL_PUNCH_HOLE)
		touched(c, c->arg[0], OP(TH_DEALLOCATE, TH_HOW_FALLOCATE, 0), offset, len);
	else if (mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE))
		shifted(c, offset, len, mode & FALLOC_FL_INSERT_RANGE);
	else if (mode & FALLOC_FL_ZERO_RANGE)
		touched(c, c->arg[0], OP(TH_WRITE, TH_HOW_FALLOCATE, 0), offset, len);
	/* other modes reserve space and change no byte */
	return 0;
}

/* vmsplice: from memory into a pipe, or the reverse. */
static __always_inline u32 spliced_op(u32 fd)
{
	u64 file = fd_file(bpf_get_current_task_btf(), fd);

	return file && (K(struct file, file, f_mode) & FMODE_WRITE) ? OP(TH_WRITE, TH_HOW_SPLICE, 0)
								    : OP(TH_READ, TH_HOW_SPLICE, 0);
}

/* Whether files exchange their bytes, or the kernel uses a file as a disk from now on. */
static __always_inline bool unfollowed_ioctl(u32 cmd)
{
	return cmd == LOOP_SET_FD || cmd == LOOP_CHANGE_FD || cmd == LOOP_CONFIGURE ||
	       cmd == XFS_IOC_SWAPEXT || cmd == XFS_IOC_EXCHANGE_RANGE || cmd == EXT4_IOC_MOVE_EXT;
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

/* Close a range of descriptors. Above the direct ones, the check at the next use detects it. */
GLOBAL int do_close_range(struct call *c)
{
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
			close_fd(c->slot, c->tid, fd, 0);
	return 0;
}

#endif
