/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The few kernel types that the program reads, written by hand. Only names and
 * types of the members matter: libbpf relocates every access to the running
 * kernel's layout (CO-RE), so order, size and missing members do not.
 */
#ifndef TRACEHINT_VMLINUX_H
#define TRACEHINT_VMLINUX_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
enum { false, true };
#define NULL ((void *)0)

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
};
#define BPF_ANY 0
#define BPF_F_NO_PREALLOC 1U
#define BPF_F_MMAPABLE (1U << 10)
#define BPF_RB_NO_WAKEUP 1
#define BPF_RB_FORCE_WAKEUP 2
#define BPF_RB_AVAIL_DATA 0

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r10, r9, r8, bp, bx, cx, dx, si, di, orig_ax;
};

struct thread_info {
	u32 status;
};
#else
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
};

struct thread_info {
	unsigned long flags;
};
#endif

struct qstr {
	union {
		struct {
			u32 hash;
			u32 len;
		};
		u64 hash_len;
	};
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct hlist_bl_head {
	struct hlist_bl_node *first;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
	struct dentry *s_root;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	unsigned int i_nlink;
	s64 i_size;
	u32 i_generation;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct mnt_namespace *mnt_ns;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct xarray {
	void *xa_head;
};

struct xa_node {
	unsigned char shift;
	void *slots[64];
};

struct address_space {
	struct inode *host;
	struct xarray i_pages;
};

struct file {
	unsigned int f_mode;
	struct inode *f_inode;
	unsigned int f_flags;
	struct path f_path;
	s64 f_pos;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root, pwd;
};

struct mm_struct {
	unsigned long arg_start, arg_end, env_start, env_end;
	struct file *exe_file;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

typedef struct {
	u32 val;
} kuid_t;

struct cred {
	kuid_t uid, euid;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
	int nr_threads;
	unsigned int flags;
	int group_exit_code;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct task_struct {
	struct thread_info thread_info;
	struct mm_struct *mm;
	int exit_code;
	int pid;
	int tgid;
	u64 start_boottime;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	const struct cred *cred;
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct sched_entity se;
};

struct io_cqe {
	s32 res;
};

struct io_uring_task {
	struct task_struct *task;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	struct io_cqe cqe;
	struct io_uring_task *tctx;
};

struct kiocb {
	s64 ki_pos;
};

struct io_rw {
	struct kiocb kiocb;
};

struct open_how {
	u64 flags;
};

struct io_open {
	u32 file_slot;
	struct open_how how;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_pgoff, vm_flags;
	struct file *vm_file;
};

struct linux_binprm {
	unsigned int secureexec : 1;
};

#pragma clang attribute pop

#endif
