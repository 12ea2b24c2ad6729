/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Interface between the BPF program and the loader; none of it is written to disk. */
#ifndef TRACEHINT_CONTROL_H
#define TRACEHINT_CONTROL_H

#include "layout.h"

/* Effect of a system call on files; the tables in rec/calls.c map numbers to these. */
enum th_call {
	TH_CALL_NONE,
	TH_CALL_READ, /* at the file position; among the first four, odd values read */
	TH_CALL_WRITE,
	TH_CALL_PREAD, /* position in the fourth argument, -1: the file position */
	TH_CALL_PWRITE,
	TH_CALL_OPEN,
	TH_CALL_OPENAT,
	TH_CALL_OPENAT2,
	TH_CALL_CREAT,
	TH_CALL_OPEN_HANDLE,
	TH_CALL_CLOSE,
	TH_CALL_DUP2,
	TH_CALL_CLOSE_RANGE,
	TH_CALL_COPY_RANGE,
	TH_CALL_SENDFILE,
	TH_CALL_SPLICE,
	TH_CALL_MMAP,
	TH_CALL_MREMAP,
	TH_CALL_FTRUNCATE,
	TH_CALL_TRUNCATE,
	TH_CALL_FALLOCATE,
	TH_CALL_IOCTL,
	TH_CALL_IO_SUBMIT,
	TH_CALL_RENAME,
	TH_CALL_RENAMEAT,
	TH_CALL_RENAMEAT2,
	TH_CALL_LINK,
	TH_CALL_LINKAT,
	TH_CALL_SYMLINK,
	TH_CALL_SYMLINKAT,
	TH_CALL_UNLINK,
	TH_CALL_UNLINKAT,
	TH_CALL_MKDIR,
	TH_CALL_MKDIRAT,
	TH_CALL_RMDIR,
	TH_CALL_STAT,
	TH_CALL_STATAT, /* flags in the fourth argument */
	TH_CALL_READDIR,
	TH_CALL_CHMOD,
	TH_CALL_XATTR,
	TH_CALL_ACCESS,
	TH_CALL_STATX,	     /* flags in the third argument */
	TH_CALL_PREAD_SPLIT, /* 32 bits: position in two halves */
	TH_CALL_PWRITE_SPLIT,
	TH_CALL_MMAP_PAGES, /* 32 bits: offset in pages */
	TH_CALL_FTRUNCATE_SPLIT,
	TH_CALL_TRUNCATE_SPLIT,
	TH_CALL_FALLOCATE_SPLIT,
	TH_CALL_UNKNOWN, /* moves file data in a way that is not followed: counted */
	TH_CALL_TEE,
	TH_CALL_VMSPLICE,
	TH_CALL_MPROTECT,
	TH_CALL_MADVISE,
	TH_CALL_MKNOD, /* mode in the second argument */
	TH_CALL_MKNODAT,
};

/* Whose processes are followed. */
enum th_follow { TH_FOLLOW_COMMAND, TH_FOLLOW_PIDS, TH_FOLLOW_CGROUP, TH_FOLLOW_NODE };

/* Set by the loader between open and load. */
struct th_config {
	unsigned int direct; /* bpf_rdonly_cast exists: read kernel memory without a call */
	unsigned int slots;
	unsigned int only_uid; /* 1: follow processes of `uid` only */
	unsigned int uid;
	unsigned int faults;		   /* page fault tracepoints are attached */
	unsigned int follow;		   /* enum th_follow */
	unsigned long long cookie;	   /* the command announces itself with it */
	unsigned long long gap_ticks;	   /* a pause that ends a run */
	unsigned long long gap_ns;	   /* the same in ns */
	unsigned long long wake_bytes;	   /* wake the loader when a ring holds more */
	unsigned int magics[TH_MAX_MAGIC]; /* file systems without data: proc, sysfs ... */
	unsigned char calls[TH_MAX_CALLS];
	unsigned char calls32[TH_MAX_CALLS];
};

/* Placeholder for bpf_rdonly_cast in calls; the loader replaces it by the function's number. */
#define TH_CALL_RDONLY_CAST 0x7448434c

/* Mapping flags of a process, which its children inherit. */
#define TH_PROC_MAPPINGS (TH_PROC_MAPPED | TH_PROC_MAPPED_WRITE | TH_PROC_MAPPED_LARGE)

enum th_armed {
	TH_IDLE,
	TH_ARMED,    /* waiting for the command, or the loader, to announce itself */
	TH_ADOPTING, /* running processes are adopted */
};

/* Shared at run time. */
struct th_state {
	unsigned int armed; /* enum th_armed */
	unsigned int root_epoch;
	unsigned int epochs;
	unsigned int paths;
	unsigned int path_gen;	 /* a rename invalidates older path cache entries */
	unsigned int pid_level;	 /* depth of the recorder's pid name space */
	unsigned int live;	 /* processes being followed */
	unsigned int slots_used; /* highest slot ever used */
	unsigned int self;	 /* adopting: the recorder's processes, never followed */
	unsigned int recorder;
	unsigned int wanted; /* processes requested but not adopted yet */
	unsigned int mapped; /* TH_PROC_MAPPED, ..._WRITE, ..._LARGE: flags that any process had */
	unsigned long long pid_ns;   /* address of the recorder's pid name space */
	unsigned long long begin_ns; /* adopting began */
	unsigned long long lost[TH_LOST_KINDS];
};

#endif
