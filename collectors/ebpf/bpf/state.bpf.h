/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The maps, look-up of the current process, and loss counters. */
#ifndef TRACEHINT_STATE_BPF_H
#define TRACEHINT_STATE_BPF_H

#include "kernel.bpf.h"

#define TID_BLOCK 32
#define EXEC_BYTES (sizeof(struct th_exec) + 2 * TH_MAX_ARGV + 4096)
#define TEXT_MASK 16383 /* names are built at offsets below 16 KiB */

struct tid_block {
	u16 slot[TID_BLOCK];
};

struct fd_key {
	u32 epoch;
	u32 fd;
	u32 tid;
};

struct path_key {
	u64 dentry;
	u64 mount;
};

/* Facts that must be unchanged for a cached path to be valid. */
struct path_value {
	u64 name;
	u64 parent;
	u64 inode;
	u32 gen;
	u32 id;
};

/*
 * Position of a walk towards the root. In map memory, where the verifier does not track values: on
 * the stack it would verify each step of the loop again.
 */
struct walk {
	u64 dentry;
	u64 mount;
	u32 len;
	u32 cut;
};

struct scratch {
	struct walk walk;
	u8 bytes[TEXT_MASK + 1 + 256];
};

struct exec_scratch {
	u8 bytes[EXEC_BYTES];
};

/* One scratch area per program: they may interrupt each other, never themselves. */
enum scratch_user { SCRATCH_EXIT, SCRATCH_EXEC, SCRATCH_FORK, SCRATCH_SHARE, SCRATCH_USERS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets: pid_max / TID_BLOCK */
	__type(key, u32);
	__type(value, struct tid_block);
} tids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots */
	__type(key, u32);
	__type(value, struct th_process);
} procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots * TH_DIRECT_FDS */
	__type(key, u32);
	__type(value, struct th_episode);
} direct_episodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct fd_key);
	__type(value, struct th_episode);
} hashed_episodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct path_key);
	__type(value, struct path_value);
} path_cache SEC(".maps");

/* Processes to adopt, by their number in the recorder's name space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u32);
} pids_wanted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} cgroup_wanted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1); /* slots */
	__uint(key_size, 0);
	__uint(value_size, sizeof(u32));
} free_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} extents SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_USERS);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* One per processor and, when adopting, per adopting program; too large for a per-CPU map. */
enum exec_area { EXEC_AREA, EXEC_AREA_CALL, EXEC_AREA_FORK, EXEC_AREAS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* processors */
	__type(key, u32);
	__type(value, struct exec_scratch);
} exec_scratches SEC(".maps");

static __always_inline u32 slot_of(u32 tid)
{
	u32 block = tid / TID_BLOCK;
	struct tid_block *b = bpf_map_lookup_elem(&tids, &block);

	return b ? b->slot[tid % TID_BLOCK] : 0;
}

static __always_inline struct th_process *process_at(u32 slot)
{
	return bpf_map_lookup_elem(&procs, &slot);
}

static __always_inline void lose(struct th_process *proc, u32 kind, u64 n)
{
	if (kind >= TH_LOST_KINDS)
		return;
	__sync_fetch_and_add(&state.lost[kind], n);
	if (proc)
		__sync_fetch_and_add(&proc->lost[kind], (u32)n);
}

static __always_inline void set_slot(u32 tid, u32 slot)
{
	u32 block = tid / TID_BLOCK;
	struct tid_block *b = bpf_map_lookup_elem(&tids, &block);

	if (b)
		b->slot[tid % TID_BLOCK] = slot;
	else
		lose(NULL, TH_LOST_TABLE, 1);
}

/* Exact time of an event of a process, with which its runs are compared. */
static __always_inline u64 moment_of(struct th_process *proc)
{
	proc->moment++;
	return bpf_ktime_get_boot_ns();
}

/* Waking the loader for each record would cost more than the record. */
static __always_inline u64 wake_flags(void *ring)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > cfg.wake_bytes ? BPF_RB_FORCE_WAKEUP
									   : BPF_RB_NO_WAKEUP;
}

/* Functions without `static` are checked once by the verifier, not at each call. */
#define GLOBAL __attribute__((noinline))

static __always_inline bool send(struct th_process *proc, void *record, u64 size, u64 flags)
{
	if (!flags)
		flags = wake_flags(&events);
	if (!bpf_ringbuf_output(&events, record, size, flags))
		return true;
	lose(proc, TH_LOST_LIFECYCLE, 1);
	return false;
}

#endif
