/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Reading kernel memory, with or without bpf_rdonly_cast (Linux 6.2 and later). */
#ifndef TRACEHINT_KERNEL_BPF_H
#define TRACEHINT_KERNEL_BPF_H

#include "processor.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "../control.h"

const volatile struct th_config cfg = {};
struct th_state state = {};

/* bpf_rdonly_cast. If cfg.direct is false, no call of it remains. */
static void *(*th_rdonly_cast)(const void *obj, __u32 btf_id) = (void *)TH_CALL_RDONLY_CAST;

/* libbpf 0.5 does not declare it. */
static long (*th_loop)(__u32 count, void *callback, void *ctx, __u64 flags) = (void *)181;

static long (*th_find_vma)(struct task_struct *task, __u64 addr, void *callback, void *ctx,
			   __u64 flags) = (void *)180;

#define K_CAST(type, addr) ((type *)th_rdonly_cast((void *)(addr), bpf_core_type_id_kernel(type)))

/* Member of the kernel object at `addr`. A probe read costs 34 ns, a cast load 1 ns. */
#define K(type, addr, member)                                                                      \
	({                                                                                         \
		__typeof__(((type *)0)->member) __v = 0;                                           \
		u64 __at = (u64)(addr); /* outside of what bpf_core_read relocates */              \
		if (cfg.direct)                                                                    \
			__v = K_CAST(type, __at)->member;                                          \
		else                                                                               \
			bpf_core_read(&__v, sizeof(__v), &((type *)__at)->member);                 \
		__v;                                                                               \
	})

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFIFO 0010000
#define S_IFDIR 0040000
#define FMODE_WRITE 2
#define FMODE_CREATED 0x100000
#define O_ACCMODE 3
#define O_CREAT 0100
#define O_TRUNC 01000
#define O_WRONLY 1
#define O_APPEND 02000
#define O_TMPFILE_BIT 020000000
#define O_PATH 010000000
#define AT_FDCWD -100
#define AT_EMPTY_PATH 0x1000
#define AT_REMOVEDIR 0x200
#define SIGNAL_GROUP_EXIT 4
#define CLONE_THREAD 0x10000

/*
 * The task as an untrusted pointer. From a trusted one each dereference would make the verifier
 * search all names in the kernel's type information, 2 ms each.
 */
static __always_inline struct task_struct *plain(struct task_struct *task)
{
	return cfg.direct ? K_CAST(struct task_struct, task) : task;
}

/* The struct file behind a descriptor of the current task, or 0. */
static __always_inline u64 fd_file(struct task_struct *task, u32 fd)
{
	struct fdtable *fdt = plain(task)->files->fdt;
	u64 slot, file = 0;

	if (fd >= fdt->max_fds)
		return 0;
	slot = (u64)fdt->fd + fd * 8ULL;
	if (cfg.direct)
		file = (u64)K_CAST(struct hlist_bl_head, slot)->first;
	else
		bpf_probe_read_kernel(&file, sizeof(file), (void *)slot);
	return file;
}

static __always_inline u64 file_inode(u64 file)
{
	return (u64)K(struct file, file, f_inode);
}

static __always_inline u32 now_tick(void)
{
	return (u32)bpf_jiffies64();
}

#endif
