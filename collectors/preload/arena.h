/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file per node and recording. All processes map it and write their records to it, which remain
 * when a process is killed. It has chunks of whole pages, each of one kind and one process. The
 * records are those of the eBPF collector's spool (layout.h, spool.h), for a common converter.
 * schemas/spool/arena_layout.py has the same NumPy types (tests/test_preload_layout.py).
 *
 * Times are time stamp counter values; start.json, end.json and each process have samples of it
 * with CLOCK_BOOTTIME. A text (path, argument) is identified by its offset, in units of 8 bytes.
 */
#ifndef TRACEHINT_ARENA_H
#define TRACEHINT_ARENA_H

#include "../ebpf/spool.h"

#define TH_ARENA_FILE "arena"
#define TH_ARENA_MAGIC 0x414e455241484e54ULL /* "TNHARENA" */
#define TH_ARENA_VERSION 8
#define TH_CHUNK_MAGIC 0x4b4e4843U /* "CHNK" */
#define TH_ARENA_PAGE 4096
#define TH_UNIT (4ULL << 20) /* disk space is allocated in units */
#define TH_UNITS 8192
#define TH_PROGRAMS 240 /* slots for facts about programs */
#define TH_FIRST 6	/* episodes in the process page: short programs need no chunk */

/* Kinds of chunks besides TH_EPISODE, TH_EXTENT, TH_PATH (texts), TH_NAME, TH_ALIVE (processes): */
#define TH_EVENT 16 /* forks and waits */
#define TH_BRIEF 17 /* closed episodes */

/* One process allocates a unit; others wait for a limited time and then use the next unit. */
enum th_unit { TH_UNIT_NONE, TH_UNIT_CLAIMED, TH_UNIT_READY };

/* Facts about a program, found by one process for all; or the text of a mount table (mounts.c). */
struct th_program_known {
	unsigned long long
		file;	    /* hash of name, file and root directory (record/programs.c); 0: free */
	unsigned int class; /* enum th_class plus 1; 0: not known yet */
	unsigned int exe;   /* text: the kernel's name of it, or the table; 0: not known */
};

struct th_arena {
	unsigned long long magic;
	unsigned int version;
	unsigned int epochs; /* number of epochs so far */
	unsigned long long size;
	unsigned long long used;      /* end of the assigned space; chunks end before `size` */
	unsigned long long allocated; /* end of the last allocated unit */
	unsigned long long gap;	      /* a longer pause (in ticks) ends a run */
	/* The recorder's mount namespace (0: not known) and root directory. */
	unsigned int mounts, root_mount;
	unsigned long long root_ino;
	unsigned int remounts; /* number of calls and programs that may have changed mounts */
	unsigned int spare;
	unsigned long long lost[TH_LOST_KINDS + 1];
	unsigned long long unplaced; /* chunks that could not be allocated or mapped */
	/* enum th_unit; READY: its disk blocks are allocated, so writing cannot fail */
	unsigned char units[TH_UNITS];
	struct th_program_known programs[TH_PROGRAMS];
};

struct th_chunk {
	unsigned int magic;
	unsigned int kind;
	unsigned long long self; /* its offset in the file */
	unsigned int size;
	unsigned int epoch;
	unsigned int used; /* bytes, including this header; may exceed `size` */
	unsigned int spare;
};

struct th_text {
	unsigned int len;
	unsigned int dir; /* of a relative path: text of its directory */
			  /* followed by the bytes */
};

struct th_clock {
	unsigned long long ticks, boot_ns;
};

/* A process epoch. Its exe and cwd are texts; the rest of the chunk stores texts. */
struct th_process_page {
	struct th_chunk head;
	struct th_process proc;
	struct th_spool_exec exec; /* offsets in the file; 0: it began with a fork */
	struct th_clock began;
	unsigned int unentered;	 /* enum th_class of a program without the library; 0: with it */
	unsigned int first_used; /* may exceed TH_FIRST */
	unsigned int space;	 /* number of the PID namespace; 0: not known */
	unsigned int mounts;	 /* text: root of absolute names (mounts.c); 0: the recorder's */
	struct th_episode first[TH_FIRST];
};

/* A process was created, or a wait returned its end. */
struct th_event {
	unsigned int kind;  /* TH_EVENT_* */
	unsigned int epoch; /* of the parent */
	unsigned int pid;
	int status; /* as wait returns it */
	unsigned long long t;
};
enum th_event_kind { TH_EVENT_FORK = 1, TH_EVENT_WAIT };

/* Summary of a closed episode without its runs, whose full record is reused. If both exist, the
 * process was killed in between. */
struct th_brief {
	unsigned int kind; /* TH_BRIEF */
	unsigned int state;
	unsigned long long open_id, ino;
	unsigned int dev, generation, mode, flags, nlink, path;
	int fd;
	unsigned int run_seq;
	unsigned long long size_open, size_close, open_ns, close_ns, first_ns, last_ns;
	unsigned long long read_bytes, write_bytes;
	unsigned int read_ops, write_ops, seq_ops, small_ops;
};

#endif
