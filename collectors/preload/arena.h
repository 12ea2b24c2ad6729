/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file per node and recording that all processes map and write their records to; what they
 * wrote stays when they are killed. Chunks of whole pages, each of one kind and one process; the
 * records are those of the eBPF collector's spool (layout.h, spool.h), so that one converter
 * serves. collectors/preload/arena.py has the same as NumPy types (tests/test_preload_layout.py).
 *
 * Times are the processor's time stamp counter; the header and each process have samples of it
 * beside CLOCK_BOOTTIME. A text (path, argument) is known by its place, in units of 8 bytes.
 */
#ifndef TRACEHINT_ARENA_H
#define TRACEHINT_ARENA_H

#include "../ebpf/spool.h"

#define TH_ARENA_FILE "arena"
#define TH_ARENA_MAGIC 0x414e455241484e54ULL /* "TNHARENA" */
#define TH_ARENA_VERSION 8
#define TH_CHUNK_MAGIC 0x4b4e4843U /* "CHNK" */
#define TH_ARENA_PAGE 4096
#define TH_UNIT (4ULL << 20) /* room is taken from the disk by so many bytes */
#define TH_UNITS 8192
#define TH_PROGRAMS 240 /* that are known by their name and file */
#define TH_FIRST 6	/* episodes of a process that need no chunk: many programs are short */

/* Kinds of chunks: TH_EPISODE, TH_EXTENT, TH_PATH (texts), TH_NAME, TH_ALIVE (processes), and: */
#define TH_EVENT 16 /* forks and waits */
#define TH_BRIEF 17 /* closed episodes */

/* A unit is made by one process alone; the others wait a while, then go on behind it. */
enum th_unit { TH_UNIT_NONE, TH_UNIT_CLAIMED, TH_UNIT_READY };

/* What one process found out about a program, for all others; or a table of mounts (mounts.c). */
struct th_program_known {
	unsigned long long
		file;	    /* hash of name, file and root directory (record/programs.c); 0: free */
	unsigned int class; /* enum th_class and 1; 0: not known yet */
	unsigned int exe;   /* text: its name as the kernel has it, the table; 0: not known */
};

struct th_arena {
	unsigned long long magic;
	unsigned int version;
	unsigned int epochs; /* given out */
	unsigned long long size;
	unsigned long long used;      /* given out; chunks end before `size` */
	unsigned long long allocated; /* end of the last unit that was made */
	unsigned long long gap;	      /* a pause of so many ticks ends a run */
	/* The recorder's mount namespace (0: not known), and its root directory. */
	unsigned int mounts, root_mount;
	unsigned long long root_ino;
	unsigned int remounts; /* calls and programs that may have changed a table of mounts */
	unsigned int spare;
	unsigned long long lost[TH_LOST_KINDS + 1];
	unsigned long long unplaced; /* chunks that did not fit or could not be had */
	/* enum th_unit; READY has blocks on disk: writing there cannot fail */
	unsigned char units[TH_UNITS];
	struct th_program_known programs[TH_PROGRAMS];
};

struct th_chunk {
	unsigned int magic;
	unsigned int kind;
	unsigned long long self; /* its offset in the file */
	unsigned int size;
	unsigned int epoch;
	unsigned int used; /* bytes, with this head; may be more than size */
	unsigned int spare;
};

struct th_text {
	unsigned int len;
	unsigned int dir; /* of a relative path: the text of its directory */
			  /* the bytes */
};

struct th_clock {
	unsigned long long ticks, boot_ns;
};

/* A process epoch; its exe, cwd are texts. The rest of the chunk holds texts. */
struct th_process_page {
	struct th_chunk head;
	struct th_process proc;
	struct th_spool_exec exec; /* offsets in the file; no text: began with a fork */
	struct th_clock began;
	unsigned int unentered;	 /* enum th_class: what runs cannot be entered; 0: it can */
	unsigned int first_used; /* may be more than TH_FIRST */
	unsigned int space;	 /* number of the PID namespace; 0: not known */
	unsigned int mounts;	 /* text: what absolute names are below (mounts.c); 0: as outside */
	struct th_episode first[TH_FIRST];
};

/* A process was made, or its end was seen. */
struct th_event {
	unsigned int kind;  /* TH_EVENT_* */
	unsigned int epoch; /* of the parent */
	unsigned int pid;
	int status; /* as wait gives it */
	unsigned long long t;
};
enum th_event_kind { TH_EVENT_FORK = 1, TH_EVENT_WAIT };

/* What is left of an episode that was closed, its runs apart: the place of the whole one is used
 * again. Where both are there, the process was killed in between. */
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
