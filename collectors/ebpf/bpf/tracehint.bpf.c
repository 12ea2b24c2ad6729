// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * tracehint: follows a command's processes and adds up what they do to files.
 * Stands on BTF raw tracepoints only. docs/collectors/ebpf.md explains the parts.
 */
#include "io.bpf.h"
#include "names.bpf.h"
#include "process.bpf.h"
#include "uring.bpf.h"

#define PRCTL 157
#define MAX_IOVECS 1024

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A path operation that also counts as a metadata operation. */
static __always_inline void meta(struct call *c, u32 kind)
{
	struct th_process *proc = process_at(c->slot);

	if (kind >= TH_META_KINDS || !proc)
		return;
	__sync_fetch_and_add(&proc->meta[kind], 1);
	if (c->ret < 0)
		__sync_fetch_and_add(&proc->meta_errors[kind], 1);
}

static __always_inline void name_meta(struct call *c, u32 class)
{
	if (class <= TH_CALL_RENAMEAT2)
		meta(c, TH_META_RENAME);
	else if (class >= TH_CALL_MKDIR && class <= TH_CALL_MKDIRAT)
		meta(c, TH_META_MKDIR);
	else if (class >= TH_CALL_UNLINK && class <= TH_CALL_RMDIR)
		meta(c, TH_META_UNLINK);
}

GLOBAL int data_calls(struct call *c, u32 class)
{
	u64 *a;
	s64 ret;

	if (!c)
		return 0;
	a = c->arg;
	ret = c->ret;
	switch (class) {
	case TH_CALL_COPY_RANGE:
		if (ret > 0) {
			moved_slow(c, a[0], OP(TH_READ, TH_HOW_COPY, 0), end_offset(a[1], ret),
				   ret);
			moved_slow(c, a[2], OP(TH_WRITE, TH_HOW_COPY, 0), end_offset(a[3], ret),
				   ret);
		}
		break;
	case TH_CALL_SENDFILE:
		if (ret > 0) {
			moved_slow(c, a[1], OP(TH_READ, TH_HOW_SENDFILE, 0), end_offset(a[2], ret),
				   ret);
			moved_slow(c, a[0], OP(TH_WRITE, TH_HOW_SENDFILE, 0), -1, ret);
		}
		break;
	case TH_CALL_SPLICE:
		if (ret > 0) {
			moved_slow(c, a[0], OP(TH_READ, TH_HOW_SPLICE, 0), end_offset(a[1], ret),
				   ret);
			moved_slow(c, a[2], OP(TH_WRITE, TH_HOW_SPLICE, 0), end_offset(a[3], ret),
				   ret);
		}
		break;
	case TH_CALL_MMAP:
		if (ret >= 0 || ret < -4095)
			do_mmap(c, a[5]);
		break;
	case TH_CALL_MREMAP:
		if (ret >= 0 || ret < -4095)
			do_mremap(c);
		break;
	case TH_CALL_FTRUNCATE:
		if (!ret)
			touched(c, a[0], OP(TH_TRUNCATE, TH_HOW_TRUNCATE, 0), a[1], 0);
		break;
	case TH_CALL_FALLOCATE:
		if (!ret)
			do_fallocate(c, a[2], a[3]);
		break;
	case TH_CALL_IOCTL:
		if (!ret)
			do_clone(c);
		break;
	}
	return 0;
}

GLOBAL int open_calls(struct call *c, u32 class)
{
	u64 flags = 0;

	if (!c)
		return 0;
	if (c->ret < 0) {
		meta(c, TH_META_FAILED_OPEN);
		return 0;
	}
	switch (class) {
	case TH_CALL_OPEN:
		flags = c->arg[1];
		break;
	case TH_CALL_OPENAT:
	case TH_CALL_OPEN_HANDLE:
		flags = c->arg[2];
		break;
	case TH_CALL_CREAT:
		flags = O_CREAT | O_TRUNC | O_WRONLY;
		break;
	case TH_CALL_OPENAT2:
		bpf_probe_read_user(&flags, sizeof(flags), (void *)c->arg[2]);
		break;
	}
	do_open(c, flags);
	return 0;
}

GLOBAL int meta_calls(struct call *c, u32 class)
{
	if (!c)
		return 0;
	switch (class) {
	case TH_CALL_STATAT:
		if (c->arg[3] & AT_EMPTY_PATH)
			break; /* fstat: no path is looked up */
		meta(c, TH_META_STAT);
		break;
	case TH_CALL_STATX:
		if (c->arg[2] & AT_EMPTY_PATH)
			break;
		meta(c, TH_META_STAT);
		break;
	case TH_CALL_STAT:
		meta(c, TH_META_STAT);
		break;
	case TH_CALL_READDIR:
		meta(c, TH_META_READDIR);
		break;
	case TH_CALL_CHMOD:
		meta(c, TH_META_CHMOD);
		break;
	case TH_CALL_XATTR:
		meta(c, TH_META_XATTR);
		break;
	case TH_CALL_ACCESS:
		meta(c, TH_META_ACCESS);
		break;
	}
	return 0;
}

static __always_inline void rare_calls(struct call *c, u32 class, u32 nr)
{
	struct th_process *proc;

	if (class >= TH_CALL_OPEN && class <= TH_CALL_OPEN_HANDLE)
		open_calls(c, class);
	else if (class == TH_CALL_DUP2 && c->ret >= 0 && c->arg[0] != c->arg[1])
		close_fd(c->slot, c->tid, c->arg[1], bpf_ktime_get_boot_ns());
	else if (class == TH_CALL_CLOSE_RANGE && !c->ret)
		do_close_range(c);
	else if (class >= TH_CALL_COPY_RANGE && class <= TH_CALL_IOCTL && class != TH_CALL_TRUNCATE)
		data_calls(c, class);
	else if (class == TH_CALL_TRUNCATE || (class >= TH_CALL_RENAME && class <= TH_CALL_RMDIR)) {
		if (class != TH_CALL_TRUNCATE)
			name_meta(c, class);
		if (!c->ret)
			name_call(c, class);
	} else if (class >= TH_CALL_STAT && class <= TH_CALL_STATX)
		meta_calls(c, class);
	else if (class == TH_CALL_IO_SUBMIT)
		do_io_submit(c);
	else if (class == TH_CALL_UNKNOWN && c->ret >= 0) {
		proc = process_at(c->slot);
		if (proc) {
			proc->unknown_call = nr;
			lose(proc, TH_LOST_UNKNOWN_CALL, 1);
		}
	}
}

/* The command says who it is: the number that this name space gives it proves nothing. */
GLOBAL int maybe_begin(u64 nr, u64 cookie)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct th_process *proc;

	if (nr != PRCTL || cookie != cfg.cookie ||
	    __sync_val_compare_and_swap(&state.armed, 1, 0) != 1)
		return 0;
	state.pid_level = plain(task)->thread_pid->level;
	proc = process_new(task, 0, 0, SCRATCH_EXIT);
	if (proc)
		state.root_epoch = proc->epoch;
	return 0;
}

/* Offsets come in two halves or in pages there; afterwards the call is like a 64-bit one. */
static __always_inline u64 joined(struct call *c, u32 class)
{
	u64 *a = c->arg;

	switch (class) {
	case TH_CALL_PREAD_SPLIT:
	case TH_CALL_PWRITE_SPLIT:
		a[3] |= a[4] << 32;
		return class == TH_CALL_PREAD_SPLIT ? TH_CALL_PREAD : TH_CALL_PWRITE;
	case TH_CALL_MMAP_PAGES:
		a[5] *= 4096;
		return TH_CALL_MMAP;
	case TH_CALL_FTRUNCATE_SPLIT:
	case TH_CALL_TRUNCATE_SPLIT:
		a[1] |= a[2] << 32;
		return class == TH_CALL_FTRUNCATE_SPLIT ? TH_CALL_FTRUNCATE : TH_CALL_TRUNCATE;
	case TH_CALL_FALLOCATE_SPLIT:
		a[2] |= a[3] << 32;
		a[3] = a[4] | a[5] << 32;
		return TH_CALL_FALLOCATE;
	}
	return class;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(th_sys_exit, struct pt_regs *regs, long ret)
{
	u64 id = bpf_get_current_pid_tgid();
	struct call c;
	struct th_process *proc;
	u64 nr, class;

	c.slot = slot_of((u32)id);
	if (!c.slot) {
		if (state.armed)
			maybe_begin(regs->orig_ax, regs->di);
		return 0;
	}
	nr = regs->orig_ax;
	if (nr >= TH_MAX_CALLS)
		return 0;
	if (bpf_get_current_task_btf()->thread_info.status & TS_COMPAT) {
		class = cfg.calls32[nr];
		c.arg[0] = (u32)regs->bx;
		c.arg[1] = (u32)regs->cx;
		c.arg[2] = (u32)regs->dx;
		c.arg[3] = (u32)regs->si;
		c.arg[4] = (u32)regs->di;
		c.arg[5] = (u32)regs->bp;
		if (class >= TH_CALL_PREAD_SPLIT)
			class = joined(&c, class);
	} else {
		class = cfg.calls[nr];
		c.arg[0] = regs->di;
		c.arg[1] = regs->si;
		c.arg[2] = regs->dx;
		c.arg[3] = regs->r10;
		c.arg[4] = regs->r8;
		c.arg[5] = regs->r9;
	}
	if (!class)
		return 0;
	proc = process_at(c.slot);
	if (!proc || proc->state != TH_LIVE)
		return 0;
	c.tid = (u32)id == (u32)(id >> 32) ? 0 : (u32)id;
	c.ret = ret;
	if (class <= TH_CALL_PWRITE) {
		s64 pos = class >= TH_CALL_PREAD ? (s64)c.arg[3] : -1;

		if (ret <= 0)
			return 0;
		moved(&c, proc, c.arg[0],
		      class & 1 ? OP(TH_READ, TH_HOW_READ, 0) : OP(TH_WRITE, TH_HOW_WRITE, 0), pos,
		      ret);
		return 0;
	}
	if (class == TH_CALL_CLOSE) {
		if (!ret || ret == -4)
			close_fd(c.slot, c.tid, c.arg[0], bpf_ktime_get_boot_ns());
		return 0;
	}
	rare_calls(&c, class, nr);
	return 0;
}

SEC("tp_btf/task_newtask")
int BPF_PROG(th_newtask, struct task_struct *task, unsigned long clone_flags)
{
	u32 slot = slot_of((u32)bpf_get_current_pid_tgid());
	struct th_process *proc;

	if (!slot)
		return 0;
	proc = process_at(slot);
	if (!proc || proc->state != TH_LIVE)
		return 0;
	if (clone_flags & CLONE_THREAD) {
		__sync_fetch_and_add(&proc->threads, 1);
		proc->flags |= TH_PROC_THREADS;
		set_slot(task->pid, slot);
		return 0;
	}
	process_new(task, proc->epoch, proc->flags & (TH_PROC_MAPPED | TH_PROC_MAPPED_WRITE),
		    SCRATCH_FORK);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(th_exec, struct task_struct *task, int old_tid, struct linux_binprm *bprm)
{
	u32 slot = slot_of(old_tid);
	struct th_process *proc;

	if (!slot)
		return 0;
	proc = process_at(slot);
	if (!proc || proc->state != TH_LIVE)
		return 0;
	if (cfg.only_uid &&
	    (plain(task)->cred->uid.val != cfg.uid || plain(task)->cred->euid.val != cfg.uid)) {
		lose(proc, TH_LOST_CREDENTIALS, 1);
		proc->flags |= TH_PROC_STOPPED;
		set_slot(old_tid, 0);
		process_end(proc, 0);
		return 0;
	}
	process_exec(proc, task, old_tid);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(th_exit, struct task_struct *task)
{
	u32 slot = slot_of(task->pid);
	struct th_process *proc;

	if (!slot)
		return 0;
	set_slot(task->pid, 0);
	proc = process_at(slot);
	if (!proc || proc->state != TH_LIVE)
		return 0;
	if (__sync_fetch_and_add(&proc->threads, -1) > 1)
		return 0;
	process_end(proc, wait_status(task));
	return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(th_uring, void *ring, void *request)
{
	if (request)
		uring_completed((u64)request);
	return 0;
}

SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(th_fault, struct address_space *mapping, unsigned long index)
{
	fault((u64)mapping, index, index);
	return 0;
}

SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(th_map_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	fault((u64)mapping, first, last);
	return 0;
}
