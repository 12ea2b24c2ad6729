/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Constants and records shared by the BPF program, the loader and schemas/spool/convert.py, and
 * nothing else. Records are written to disk unmodified (little endian, no implicit padding);
 * tests/test_ebpf_layout.py compares this file with Python.
 *
 * Times are CLOCK_BOOTTIME nanoseconds; a "tick" is the low 32 bits of jiffies. Path identifiers
 * name a th_path record; 0 means unknown.
 */
#ifndef TRACEHINT_LAYOUT_H
#define TRACEHINT_LAYOUT_H

#define TH_SPOOL_VERSION 4
#define TH_DIRECT_FDS 16   /* descriptors with an episode slot per process */
#define TH_MAX_CALLS 512   /* system call numbers known to the tables */
#define TH_MAX_ARGV 32768  /* bytes of arguments, and of environment, read at exec */
#define TH_MAX_PATH 4096   /* bytes of one path */
#define TH_MAX_LEVELS 1024 /* directories of one path */
#define TH_MAX_MAGIC 24
#define TH_ANCESTORS 4	      /* generations searched for inherited mappings */
#define TH_UNKNOWN_URING 1000 /* added to an operation of io_uring in unknown_call */
#define TH_UNKNOWN_LIBC 2000  /* calls of a C library that the preload library does not know */
#define TH_PATHS_KEPT 262144  /* paths whose heap offsets the loader keeps */

enum th_record {
	TH_EPISODE = 1, /* an episode that has ended */
	TH_SNAPSHOT,	/* an episode that is still open (written by the loader) */
	TH_EXTENT,	/* a finished run of accesses */
	TH_EXEC,	/* end of a process epoch by exec, with the program of the next one */
	TH_EXIT,	/* end of a process */
	TH_ALIVE,	/* a process that is still running (written by the loader) */
	TH_PATH,	/* the text of a path identifier */
	TH_NAME,	/* rename, link, unlink ... */
};

/* Loss counters of the kernel, in the order of tables.LOSS_KINDS. */
enum th_loss {
	TH_LOST_LIFECYCLE,
	TH_LOST_EXTENTS, /* operations, not records */
	TH_LOST_TABLE,	 /* no free entry for a process or an open file */
	TH_LOST_PATH_CUT,
	TH_LOST_ARGV_CUT,
	TH_LOST_UNKNOWN_CALL,
	TH_LOST_CREDENTIALS,
	TH_LOST_KINDS,
};

enum th_op { TH_READ, TH_WRITE, TH_TRUNCATE, TH_DEALLOCATE };

enum th_how {
	TH_HOW_READ,
	TH_HOW_WRITE,
	TH_HOW_MMAP,
	TH_HOW_COPY,
	TH_HOW_SENDFILE,
	TH_HOW_SPLICE,
	TH_HOW_URING,
	TH_HOW_AIO,
	TH_HOW_CLONE,
	TH_HOW_FALLOCATE,
	TH_HOW_OPEN,
	TH_HOW_TRUNCATE,
};

/* Order of tables.METADATA_OPS_KINDS. */
enum th_meta {
	TH_META_STAT,
	TH_META_FAILED_OPEN,
	TH_META_READDIR,
	TH_META_UNLINK,
	TH_META_MKDIR,
	TH_META_RENAME,
	TH_META_CHMOD,
	TH_META_XATTR,
	TH_META_ACCESS,
	TH_META_KINDS,
};

enum th_name_op {
	TH_NAME_RENAME,
	TH_NAME_EXCHANGE,
	TH_NAME_LINK,
	TH_NAME_UNLINK,
	TH_NAME_SYMLINK,
	TH_NAME_MKDIR,
	TH_NAME_RMDIR,
	TH_NAME_TRUNCATE,
};

enum th_episode_state {
	TH_EP_LIVE = 1 << 0,
	TH_EP_IGNORED = 1 << 1, /* not recorded: terminal, socket, /proc ... */
	TH_EP_PIPE = 1 << 2,
	TH_EP_CREATED = 1 << 3,
	TH_EP_TRUNCATED = 1 << 4,
	TH_EP_INHERITED = 1 << 5, /* the descriptor was not opened in this epoch */
	TH_EP_PARTIAL = 1 << 6,	  /* one thread's share of an episode: sum by open_id */
	TH_EP_FAULTS = 1 << 7,	  /* pages touched through a mapping, no descriptor */
	TH_EP_ENDING = 1 << 8,	  /* being sent: its entry is not free yet */
};

enum th_process_state { TH_FREE, TH_LIVE, TH_ENDED };

enum th_process_flag {
	TH_PROC_EXECED = 1 << 0,
	TH_PROC_STOPPED = 1 << 1, /* not followed further: its credentials changed */
	TH_PROC_THREADS = 1 << 2,
	TH_PROC_MAPPED = 1 << 3, /* faults on mapped files are recorded */
	TH_PROC_MAPPED_WRITE = 1 << 4,
	TH_PROC_ADOPTED = 1 << 5,	/* was running before it was followed */
	TH_PROC_WRITES_UNSEEN = 1 << 6, /* a write fault could not be assigned to a file */
	TH_PROC_MAPPED_LARGE = 1 << 7,	/* a mapping large enough for one upper page table entry */
};

/* `count` pieces of `length` bytes, `stride` apart, made by `ops` operations. */
struct th_run {
	unsigned long long start;
	unsigned long long length;
	long long stride; /* 0 while count is 1 */
	unsigned long long bytes;
	unsigned long long first_ns;
	unsigned long long last_ns; /* at most a tick early, never past a later moment */
	unsigned int last_tick;	    /* tick when last_ns was read */
	unsigned int moment;	    /* th_process.moment at that time */
	unsigned int count;
	unsigned int ops;  /* 0: no run */
	unsigned char op;  /* enum th_op */
	unsigned char how; /* enum th_how */
	unsigned char inexact;
	unsigned char spare[5];
};

/* One process epoch's use of one open file, from open (or first use) to close. */
struct th_episode {
	unsigned int kind;
	unsigned int state;
	unsigned long long open_id; /* epoch << 32 | counter */
	unsigned long long file;    /* kernel addresses: show whether the descriptor was reused */
	unsigned long long inode;
	unsigned int epoch;
	int fd;		  /* negative: the key of accesses without a descriptor */
	unsigned int tid; /* 0: the whole process */
	unsigned int path;
	unsigned long long ino;
	unsigned int dev; /* kernel encoding: major << 20 | minor */
	unsigned int generation;
	unsigned int magic;
	unsigned int mode;
	unsigned int flags;
	unsigned int nlink; /* at the end */
	unsigned long long size_open;
	unsigned long long size_close;
	unsigned long long open_ns;
	unsigned long long close_ns; /* 0: at the end of the epoch */
	unsigned long long read_ops;
	unsigned long long read_bytes;
	unsigned long long write_ops;
	unsigned long long write_bytes;
	unsigned long long seq_ops;
	unsigned long long small_ops;
	unsigned long long lost_ops; /* operations whose run was dropped */
	unsigned long long first_ns; /* first operation; 0: none */
	unsigned long long next;     /* where the last operation ended */
	unsigned int run_seq;	     /* runs sent to the extents ring */
	unsigned int spare;
	struct th_run outer; /* the last two runs are part of the summary */
	struct th_run inner;
};

struct th_extent {
	unsigned int kind;
	unsigned int run_seq;
	unsigned long long open_id;
	struct th_run run;
};

/* A process epoch: begins at fork or exec, ends at exec or exit. */
struct th_process {
	unsigned int kind;
	unsigned int state;
	unsigned int epoch;
	unsigned int parent; /* epoch that forked it; 0: the command itself */
	unsigned int prev;   /* epoch before the exec; 0: began with a fork */
	unsigned int slot;
	unsigned int pid;  /* in the recorder's pid namespace */
	unsigned int tgid; /* in the initial pid namespace */
	unsigned int uid;
	unsigned int flags;
	unsigned int threads;
	unsigned int hashed; /* episodes in the hash table: the loader sweeps them */
	unsigned long long start_ns;
	unsigned long long end_ns;
	int exit_status; /* as wait() returns it */
	unsigned int cwd;
	unsigned int exe;
	unsigned int opens;	   /* counter for open_id */
	unsigned int used;	   /* direct episodes in use, one bit per descriptor */
	unsigned int unknown_call; /* number of the last call that was not understood */
	unsigned int meta[TH_META_KINDS];
	unsigned int meta_errors[TH_META_KINDS];
	unsigned int lost[TH_LOST_KINDS];
	unsigned int ppid; /* adopted: tgid of the parent, whose epoch may start later */
	unsigned int ancestors[TH_ANCESTORS]; /* epochs since the last exec, nearest first */
	unsigned int moment; /* number of exact times taken: runs, opens, closes, forks, names */
	unsigned int writes_kept;    /* write faults to resolve later */
	unsigned long long cpu_from; /* CPU time of the process when the epoch began */
	unsigned long long cpu_ns;   /* CPU time at its end, of all threads; 0: unknown */
};

/* Followed by the arguments, then the environment, as in memory. */
struct th_exec {
	unsigned int kind;
	unsigned int argv_len;
	unsigned int env_len;
	unsigned int epoch; /* the new one */
	struct th_process old;
};

/* Followed by the names from the last to the first, each ended by NUL. */
struct th_path {
	unsigned int kind;
	unsigned int id;
	unsigned int len;
	unsigned int cut;
};

/* Followed by both strings as passed by the caller, each ended by NUL. */
struct th_name {
	unsigned int kind;
	unsigned int op;
	unsigned int epoch;
	unsigned int root; /* path identifier of the caller's root directory */
	unsigned int dir;  /* of the directory to which the string is relative; 0: absolute */
	unsigned int new_dir;
	unsigned int len;
	unsigned int new_len;
	unsigned long long t_ns;
	unsigned long long size; /* truncate */
	unsigned int tgid;
	unsigned int spare;
};

#endif
