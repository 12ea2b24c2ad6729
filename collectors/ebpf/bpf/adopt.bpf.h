/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Following running processes (`record --pid`, `--cgroup`). Each is adopted at the end of its next
 * system call, with the result of that call: none is missed and none has to be stopped. Its
 * descriptors are found when they are used.
 */
#ifndef TRACEHINT_ADOPT_BPF_H
#define TRACEHINT_ADOPT_BPF_H

#include "process.bpf.h"

/* The recorder announces itself; from now on other processes are adopted. */
static __always_inline void adopting_begin(struct task_struct *task)
{
	struct pid *pid = plain(task)->thread_pid;
	u64 at = (u64)pid + bpf_core_field_offset(struct pid, numbers) +
		 recorder_level() * bpf_core_type_size(struct upid) +
		 bpf_core_field_offset(struct upid, ns);
	u64 ns = 0;

	bpf_probe_read_kernel(&ns, sizeof(ns), (void *)at);
	state.pid_ns = ns;
	state.self = task->tgid;
	state.recorder = plain(task)->real_parent->tgid;
	state.begin_ns = bpf_ktime_get_boot_ns();
	state.epochs = 1; /* epoch 1 is the launcher when a command is recorded */
	state.root_epoch = 1;
	state.armed = TH_ADOPTING;
}

/* The pid in the recorder's namespace; 0 if the process has none there. */
static __always_inline u32 wanted_key(struct task_struct *leader)
{
	struct pid *pid = plain(leader)->thread_pid;
	u64 at = (u64)pid + bpf_core_field_offset(struct pid, numbers) +
		 recorder_level() * bpf_core_type_size(struct upid) +
		 bpf_core_field_offset(struct upid, ns);
	u64 ns = 0;

	if (!state.pid_level)
		return leader->pid;
	if (state.pid_level > pid->level)
		return 0;
	bpf_probe_read_kernel(&ns, sizeof(ns), (void *)at);
	return ns == state.pid_ns ? visible_pid(leader) : 0;
}

static __always_inline bool take_wanted(u32 key)
{
	if (!key || bpf_map_delete_elem(&pids_wanted, &key))
		return false;
	__sync_fetch_and_add(&state.wanted, -1);
	return true;
}

static __always_inline bool is_wanted(struct task_struct *task)
{
	if (cfg.follow == TH_FOLLOW_CGROUP)
		return bpf_current_task_under_cgroup(&cgroup_wanted, 0) == 1;
	return take_wanted(wanted_key(task->group_leader));
}

/* Constant false when a command is recorded. */
static __always_inline bool adopting(void)
{
	return cfg.follow && state.armed == TH_ADOPTING &&
	       (cfg.follow != TH_FOLLOW_NODE || state.wanted);
}

/* A new slot for the current thread, which has none yet; 0 if it must not be followed. */
GLOBAL u32 adopt(u32 user)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct th_process *proc;
	u32 slot;

	if (!cfg.follow)
		return 0; /* constant at load: nothing below is verified then */
	slot = slot_of(task->tgid);
	if (slot) { /* adopted by another thread */
		set_slot(task->pid, slot);
		return slot;
	}
	if ((u32)task->tgid == state.self || (u32)task->tgid == state.recorder || !plain(task)->mm)
		return 0;
	if (cfg.only_uid &&
	    (plain(task)->cred->uid.val != cfg.uid || plain(task)->cred->euid.val != cfg.uid))
		return 0;
	if (!is_wanted(task))
		return 0;
	proc = process_new(task->group_leader, 0, TH_PROC_MAPPINGS, user);
	if (!proc)
		return 0;
	set_slot(task->pid, proc->slot);
	proc->flags |= TH_PROC_ADOPTED;
	/* it may have mappings */
	__sync_fetch_and_or(&state.mapped, TH_PROC_MAPPINGS);
	spans_begin(proc->slot, 0xff);
	proc->threads = plain(task)->signal->nr_threads;
	if (proc->threads > 1)
		proc->flags |= TH_PROC_THREADS;
	proc->ppid = plain(task)->real_parent->tgid;
	proc->start_ns = plain(task)->group_leader->start_boottime;
	if (proc->start_ns < state.begin_ns)
		proc->start_ns = state.begin_ns;
	proc->exe = file_path((u64)plain(task)->mm->exe_file, user, proc->slot);
	send_exec(proc, task, proc->start_ns,
		  user == SCRATCH_FORK ? EXEC_AREA_FORK : EXEC_AREA_CALL);
	return proc->slot;
}

/* Whether the last thread has ended; threads of an adopted process may have no slot. */
static __always_inline bool adopted_ends(struct th_process *proc, struct task_struct *task)
{
	if (plain(task)->signal->live.counter > 0)
		return false;
	set_slot(task->tgid, 0);
	return __sync_lock_test_and_set(&proc->threads, 0) != 0;
}

/* Drop the request for a process that ended without another system call. */
static __always_inline void unwanted(struct task_struct *task)
{
	if (cfg.follow == TH_FOLLOW_CGROUP || plain(task)->signal->live.counter > 0)
		return;
	take_wanted(wanted_key(task->group_leader));
}

#endif
