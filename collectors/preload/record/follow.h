/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following programs that the library cannot enter (static, Go). Before the exec the program gets a
 * seccomp filter that tells a process of ours about calls on names and descriptors; that process
 * lets them go on, and looks at a descriptor before it is closed. On when TRACEHINT_FOLLOW is set:
 * without privileges the filter takes setuid from the program's children (no_new_privs).
 */
#ifndef TRACEHINT_FOLLOW_H
#define TRACEHINT_FOLLOW_H

#include <linux/ioctl.h>
#include <linux/seccomp.h>
#include "record.h"

#define FOLLOW_TARGETS 1024
#define FOLLOW_PATH 4096
#define FOLLOW_FIRST 64 /* descriptors that may be inherited */
#define FOLLOW_MADE 64

/* A name that is about to change, until the thread's next call tells whether it did. */
struct pending {
	bool is;
	enum th_name_op op;
	unsigned long long ino, t;
	char old[FOLLOW_PATH], new[FOLLOW_PATH];
};

/* A followed process. */
struct target {
	int tgid;   /* 0: free */
	bool skip;  /* it has the library now, and records itself */
	bool dup;   /* has descriptors that share a position */
	bool fresh; /* what it inherited is not noted yet */
	bool check; /* it was about to execute another program */
	unsigned int umask;
	unsigned long long opened;     /* when it opened something last */
	long long began[FOLLOW_FIRST]; /* inherited descriptors: position and 1; 0: not inherited */
	unsigned long long made[FOLLOW_MADE]; /* inodes of the last files that it created */
	unsigned int made_count;
	struct rec rec;
	struct pending pending;
};

/*
 * What our two processes share, so that either can go on alone. They share their descriptors too:
 * what one that died had open tells the other one what it was about.
 */
struct follow {
	int listener; /* 0: not yet; one more than the descriptor */
	int ready;
	int keeper;		   /* the first of the two */
	struct seccomp_notif call; /* in the kernel's hands and ours: id 0, none */
	int making;		   /* a file of this name is made for that call */
	char path[FOLLOW_PATH];
	struct th_process_page *first; /* of the program that comes, until it is there */
	struct th_process_page *whole; /* of the same, to note that nobody is left */
	struct target targets[FOLLOW_TARGETS];
};

/* follow.c: of the process that executes; `next`: the record of the program that comes. */
void follow_start(struct th_process_page *next);
/* Returns in a process that serves, while its caller waits to do so after it; not in that one. */
void follow_split(struct follow *follow, int listener);

/* follow_serve.c: in our process, until nobody is left to be followed. */
void follow_serve(struct follow *follow, int listener);

/* follow_calls.c: before the call is let go on. Returns true where it was answered already. */
bool follow_call(struct follow *follow, struct target *target, int listener);

/* follow_names.c */
bool follow_path(const struct seccomp_notif *call, int dir, int path, char *to);
void follow_name(struct target *target, const struct seccomp_notif *call);
void follow_settle_name(struct target *target);

/* follow_files.c: a descriptor before it is closed. */
enum follow_which { FOLLOW_ALL, FOLLOW_CLOSED_BY_EXEC, FOLLOW_NOTE };
void follow_settle(struct target *target, long fd, bool exec_only);
void follow_each(struct target *target, long from, long to, enum follow_which which);
/* The first descriptor below `end` but one of a process that is for the file; -1: none. */
long follow_holds(int pid, const struct statx *file, long but, long end);
unsigned int follow_link(struct target *target, const char *what);
char *follow_proc(char *to, int pid, const char *what, long fd); /* fd -1: none; 64 bytes */

#endif
