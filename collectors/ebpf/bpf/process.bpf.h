/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Process life cycle: fork, exec, exit, and the start and end of following. */
#ifndef TRACEHINT_PROCESS_BPF_H
#define TRACEHINT_PROCESS_BPF_H

#include "episode.bpf.h"
#include "spans.bpf.h"

/* Depth of the recorder's pid namespace (at most 32). Kernels before 6.2 need the bound. */
static __always_inline u64 recorder_level(void)
{
	u64 level = state.pid_level;

	barrier_var(level);
	return level & 63;
}

/* The pid of a process in the recorder's namespace. */
static __always_inline u32 visible_pid(struct task_struct *leader)
{
	struct pid *pid = plain(leader)->thread_pid;
	u64 number = (u64)pid + bpf_core_field_offset(struct pid, numbers) +
		     recorder_level() * bpf_core_type_size(struct upid);
	int nr = leader->pid;

	barrier_var(nr);
	if (state.pid_level > pid->level)
		return nr;
	bpf_probe_read_kernel(&nr, sizeof(nr),
			      (void *)number + bpf_core_field_offset(struct upid, nr));
	return nr;
}

/* Allocate a slot for a process to follow. */
static __always_inline struct th_process *process_new(struct task_struct *task, u32 parent,
						      u32 mapped, u32 user)
{
	struct th_process *proc;
	u32 slot;

	if (bpf_map_pop_elem(&free_slots, &slot)) {
		/* no freed slot: use a new one; slot 0 means not followed */
		slot = state.slots_used < cfg.slots ? __sync_fetch_and_add(&state.slots_used, 1) + 1
						    : cfg.slots;
		if (slot >= cfg.slots) {
			lose(NULL, TH_LOST_TABLE, 1);
			return NULL;
		}
	}
	proc = process_at(slot);
	if (!proc)
		return NULL;
	__builtin_memset(proc, 0, sizeof(*proc));
	proc->kind = TH_ALIVE;
	proc->slot = slot;
	proc->epoch = __sync_fetch_and_add(&state.epochs, 1) + 1;
	proc->parent = parent;
	proc->tgid = task->tgid;
	proc->pid = visible_pid(task);
	proc->uid = plain(task)->cred->uid.val;
	proc->threads = 1;
	proc->start_ns = bpf_ktime_get_boot_ns();
	proc->cwd = fs_path(task, FS_CWD, user, slot);
	proc->state = TH_LIVE;
	proc->flags = mapped;
	spans_begin(slot, 0);
	set_slot(task->pid, slot);
	__sync_fetch_and_add(&state.live, 1);
	return proc;
}

/* Record sizes and link counts while descriptors are open: many programs never close them. */
static __always_inline void episodes_measure(struct th_process *proc)
{
	u32 fd, used = proc->used;

	for (fd = 0; fd < TH_DIRECT_FDS; fd++) {
		struct th_episode *ep;

		if (!(used & (1U << fd)))
			continue;
		ep = direct_at(proc->slot, fd);
		if (!ep || !(ep->state & TH_EP_LIVE) || (ep->state & TH_EP_IGNORED))
			continue;
		ep->nlink = K(struct inode, ep->inode, i_nlink);
		ep->size_close = K(struct inode, ep->inode, i_size);
	}
}

/* Stop following a process. The loader writes out its map entries and frees the slot. */
static __always_inline void process_end(struct th_process *proc, int status)
{
	episodes_measure(proc);
	spans_end(proc);
	proc->exit_status = status;
	proc->end_ns = bpf_ktime_get_boot_ns();
	proc->kind = TH_EXIT;
	proc->state = TH_ENDED;
	__sync_fetch_and_add(&state.live, -1);
	send(proc, proc, sizeof(*proc), 0);
}

/* CPU time of a thread in ns, as of its last tick or switch. */
static __always_inline u64 cpu_used(struct task_struct *task)
{
	return plain(task)->se.sum_exec_runtime;
}

static __always_inline int wait_status(struct task_struct *task)
{
	struct signal_struct *signal = plain(task)->signal;

	if (signal->flags & SIGNAL_GROUP_EXIT)
		return signal->group_exit_code;
	return plain(task)->group_leader->exit_code;
}

/* Send arguments and environment, which are adjacent in the new program's memory. */
static __noinline void send_exec(struct th_process *proc, struct task_struct *task, u64 now,
				 u32 area)
{
	u32 cpu = bpf_get_smp_processor_id(), at_cpu = cfg.follow ? cpu * EXEC_AREAS + area : cpu;
	struct exec_scratch *s = bpf_map_lookup_elem(&exec_scratches, &at_cpu);
	struct mm_struct *mm = plain(task)->mm;
	struct th_exec *rec = (struct th_exec *)s;
	u64 argv = mm->arg_end - mm->arg_start, env = mm->env_end - mm->env_start, at;

	if (!s)
		return;
	if (argv > TH_MAX_ARGV) {
		lose(proc, TH_LOST_ARGV_CUT, 1);
		argv = TH_MAX_ARGV;
	}
	if (env > TH_MAX_ARGV) { /* the task's name may be beyond this */
		lose(proc, TH_LOST_ARGV_CUT, 1);
		env = TH_MAX_ARGV;
	}
	rec->old = *proc;
	rec->old.kind = TH_EXEC;
	rec->old.end_ns = now;
	rec->old.cpu_ns += cpu_used(task);
	rec->kind = TH_EXEC;
	rec->epoch = state.epochs + 1;
	barrier_var(argv);
	if (argv > TH_MAX_ARGV ||
	    bpf_probe_read_user(s->bytes + sizeof(*rec), argv, (void *)mm->arg_start))
		argv = 0;
	at = sizeof(*rec) + argv;
	barrier_var(env);
	if (env > TH_MAX_ARGV || bpf_probe_read_user(&s->bytes[at], env, (void *)mm->env_start))
		env = 0;
	rec->argv_len = argv;
	rec->env_len = env;
	if (area != EXEC_AREA)
		rec->old.epoch = 0; /* no epoch ended */
	else
		proc->epoch = __sync_fetch_and_add(&state.epochs, 1) + 1;
	rec->epoch = proc->epoch;
	at += env;
	barrier_var(at);
	if (at <= EXEC_BYTES)
		send(proc, rec, at, 0);
}

static __always_inline void process_exec(struct th_process *proc, struct task_struct *task,
					 u32 old_tid)
{
	u64 now = bpf_ktime_get_boot_ns();
	u64 exe = (u64)plain(task)->mm->exe_file;
	u32 fd, used = proc->used, old_epoch = proc->epoch;
	u32 exe_path = file_path(exe, SCRATCH_EXEC, proc->slot);
	u32 cwd = fs_path(task, FS_CWD, SCRATCH_EXEC, proc->slot);
	struct th_episode *ep;

	for (fd = 0; fd < TH_DIRECT_FDS; fd++) {
		if (!(used & (1U << fd)))
			continue;
		ep = direct_at(proc->slot, fd);
		if (ep)
			episode_end(ep, proc->slot, now);
	}
	if (old_tid != (u32)task->pid) {
		set_slot(old_tid, 0);
		set_slot(task->pid, proc->slot);
	}
	spans_end(proc);
	send_exec(proc, task, now, EXEC_AREA);
	proc->cpu_from = proc->cpu_ns + cpu_used(task);
	proc->prev = old_epoch;
	proc->start_ns = now;
	proc->flags = TH_PROC_EXECED; /* mappings are gone */
	spans_begin(proc->slot, 0);
	proc->exe = exe_path;
	proc->cwd = cwd;
	proc->hashed = proc->opens = proc->used = proc->unknown_call = proc->writes_kept = 0;
	proc->threads = 1;
	__builtin_memset(proc->ancestors, 0, sizeof(proc->ancestors));
	__builtin_memset(proc->meta, 0, sizeof(proc->meta));
	__builtin_memset(proc->meta_errors, 0, sizeof(proc->meta_errors));
	__builtin_memset(proc->lost, 0, sizeof(proc->lost));
}

#endif
