// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The usual design, for comparison only: one event per system call on a file. */
#include "../../../collectors/ebpf/bpf/vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct event {
	__u64 time;
	__u32 pid, tid;
	__u64 nr, fd, size, ret;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u8);
} followed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} events SEC(".maps");

__u64 dropped = 0;

SEC("tp_btf/sys_exit")
int BPF_PROG(event_exit, struct pt_regs *regs, long ret)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 pid = id >> 32;
	struct event *e;

	if (!bpf_map_lookup_elem(&followed, &pid))
		return 0;
	switch (regs->orig_ax) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 17:
	case 18:
	case 19:
	case 20:
	case 257:
	case 262:
		break;
	default:
		return 0;
	}
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&dropped, 1);
		return 0;
	}
	e->time = bpf_ktime_get_boot_ns();
	e->pid = pid;
	e->tid = id;
	e->nr = regs->orig_ax;
	e->fd = regs->di;
	e->size = regs->dx;
	e->ret = ret;
	bpf_ringbuf_submit(e, 0);
	return 0;
}

SEC("tp_btf/task_newtask")
int BPF_PROG(event_fork, struct task_struct *task, unsigned long flags)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32, new = task->tgid;
	__u8 one = 1;

	if (bpf_map_lookup_elem(&followed, &pid))
		bpf_map_update_elem(&followed, &new, &one, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(event_end, struct task_struct *task)
{
	__u32 pid = task->tgid;

	if (task->pid == task->tgid)
		bpf_map_delete_elem(&followed, &pid);
	return 0;
}
