// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * tracehint: follows a command's processes and aggregates their accesses to files. Uses BTF raw
 * tracepoints only. docs/collectors/ebpf.md explains the parts.
 */
#include "calls.bpf.h"
#include "adopt.bpf.h"
#include "uring.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The command announces itself: its pid in this namespace proves nothing. */
GLOBAL int maybe_begin(u64 nr, u64 cookie)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct th_process *proc;

	if (nr != CALL_PRCTL || cookie != cfg.cookie ||
	    __sync_val_compare_and_swap(&state.armed, TH_ARMED, TH_IDLE) != TH_ARMED)
		return 0;
	state.pid_level = plain(task)->thread_pid->level;
	if (cfg.follow) {
		adopting_begin(task);
		return 0;
	}
	proc = process_new(task, 0, 0, SCRATCH_EXIT);
	if (proc)
		state.root_epoch = proc->epoch;
	return 0;
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
		if (state.armed == TH_ARMED)
			maybe_begin(call_number(regs), first_argument(regs));
		if (adopting())
			c.slot = adopt(SCRATCH_EXIT);
		if (!c.slot)
			return 0;
	}
	nr = call_number(regs);
	if (nr >= TH_MAX_CALLS)
		return 0;
	if (is_32bit_call(bpf_get_current_task_btf())) {
		class = cfg.calls32[nr];
		arguments_32bit(regs, c.arg);
		if (class >= TH_CALL_PREAD_SPLIT)
			class = joined(&c, class);
	} else {
		class = cfg.calls[nr];
		arguments(regs, c.arg);
	}
	if (!class)
		return 0;
	proc = process_at(c.slot);
	if (!proc || proc->state != TH_LIVE)
		return 0;
	c.tid = (u32)id == (u32)(id >> 32) ? 0 : (u32)id;
	c.ret = ret;
	if (proc->writes_kept)
		writes_place(c.slot);
	if (class <= TH_CALL_PWRITE) {
		s64 pos = class >= TH_CALL_PREAD ? (s64)c.arg[3] : -1;

		if (ret <= 0)
			return 0;
		if (class == TH_CALL_PWRITE)
			pos = written_at(&c, nr);
		moved(&c, proc, c.arg[0],
		      class & 1 ? OP(TH_READ, TH_HOW_READ, 0) : OP(TH_WRITE, TH_HOW_WRITE, 0), pos,
		      ret);
		return 0;
	}
	if (class == TH_CALL_CLOSE) {
		if (!ret || ret == -4)
			close_fd(c.slot, c.tid, c.arg[0], 0);
		return 0;
	}
	rare_calls(&c, class, nr);
	return 0;
}

SEC("tp_btf/task_newtask")
int BPF_PROG(th_newtask, struct task_struct *task, unsigned long clone_flags)
{
	u32 slot = slot_of((u32)bpf_get_current_pid_tgid());
	struct th_process *proc, *child;
	u32 i;

	if (!slot && adopting())
		slot = adopt(SCRATCH_FORK);
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
	proc->moment++; /* the child's start */
	child = process_new(task, proc->epoch, proc->flags & TH_PROC_MAPPINGS, SCRATCH_FORK);
	if (!child)
		return 0;
	child->ancestors[0] = proc->epoch;
	for (i = 1; i < TH_ANCESTORS; i++)
		child->ancestors[i] = proc->ancestors[i - 1];
	spans_copy(slot, child->slot);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(th_exec, struct task_struct *task, int old_tid, struct linux_binprm *bprm)
{
	u32 slot = slot_of(old_tid);
	struct th_process *proc;

	if (!slot && adopting())
		slot = slot_of(task->tgid);
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

	if (!slot && adopting()) {
		slot = slot_of(task->tgid);
		if (!slot)
			unwanted(task);
	}
	if (!slot)
		return 0;
	proc = process_at(slot);
	if (cfg.follow && proc && (proc->flags & TH_PROC_ADOPTED)) {
		if (task->pid != task->tgid)
			set_slot(task->pid, 0);
		if (proc->state == TH_LIVE && adopted_ends(proc, task))
			process_end(proc, wait_status(task));
		return 0;
	}
	set_slot(task->pid, 0);
	if (!proc || proc->state != TH_LIVE)
		return 0;
	__sync_fetch_and_add(&proc->cpu_ns, cpu_used(task));
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

SEC("tp_btf/page_fault_user")
int BPF_PROG(th_user_fault, unsigned long address, void *regs, unsigned long error)
{
	processor_fault(address, error);
	return 0;
}

/* Faults of the kernel during a call: read() into a mapping. */
SEC("tp_btf/page_fault_kernel")
int BPF_PROG(th_kernel_fault, unsigned long address, void *regs, unsigned long error)
{
	processor_fault(address, error);
	return 0;
}

SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(th_map_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	fault((u64)mapping, first, last);
	return 0;
}
