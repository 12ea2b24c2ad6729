/* SPDX-License-Identifier: Apache-2.0 */
/* Interface between the parts of the hook core. */
#ifndef TRACEHINT_HOOK_CORE_H
#define TRACEHINT_HOOK_CORE_H

#include "../hook.h"

/* How dispatch handles a call. */
enum th_action {
	TH_ACT_BEFORE = 1 << 0, /* call observers */
	TH_ACT_AFTER = 1 << 1,
	TH_ACT_CREATES = 1 << 2, /* may make a file */
	TH_ACT_EXEC = 1 << 3,
	TH_ACT_FORK = 1 << 4,
	TH_ACT_EXE = 1 << 5,   /* may read the path of a static program (bare.c) */
	TH_ACT_MAPS = 1 << 6,  /* may load an object that has system calls of its own (later.c) */
	TH_ACT_CHECK = 1 << 7, /* is only counted (check.c) */
};

#define TH_SITES "TRACEHINT_SITES" /* names the site file (sites.h) */
#define TH_FORKING 256
#define TH_QUICK 19 /* numbers up to pwrite64 */

/* State of a process, in memory that is zeroed in children by fork. */
struct th_state {
	int pid;
	unsigned int vforks; /* children of vfork that currently run in this memory */
	unsigned int shared; /* a process was created that keeps sharing the memory */
	struct th_forking {
		int tid; /* 0: free */
		unsigned int flags;
		unsigned long long began;
	} forking[TH_FORKING]; /* threads that are creating a process */
};

extern unsigned char th_actions[TH_CALLS]; /* enum th_action by number */
extern unsigned char th_quick[TH_QUICK];   /* whether th_quick_after handles the call, by number */
extern unsigned long th_checked;	   /* calls that arrived with TH_ACT_CHECK */
extern struct th_state *th_state;

/* entry.S */
extern const char th_entry[], th_fork_entry_after[], th_cancel_entry[];
long th_call_cancel(const struct th_call *call, const void *function, const void *thread);

bool th_dispatch_start(const struct th_program *program);
void th_dispatch_missed(const struct th_program *program);
bool th_wanted_by_any(int nr);
void th_created(int dirfd, const char *path, int fd);
void th_check_created(const struct th_call *call);
bool th_exec_readable(const struct th_call *call);
enum th_class th_exec_class(const struct th_call *call);
long th_exec(const struct th_call *call, enum th_class class);
void th_exec_instead(const struct th_call *call, size_t bytes, const char *without);
void th_mapped(const struct th_call *call);
void th_exec_start(const struct th_program *program);
void th_tell_incomplete(void);
void th_tell_forking(unsigned long flags, unsigned long long *began);
void th_tell_forked(long pid, unsigned long flags, unsigned long long began);
long th_dispatch(struct th_call *call);
bool th_dispatch_cancel(struct th_call *call, const void *function, const int *thread);
bool th_may_create(const struct th_call *call);
void th_fork_before(const struct th_call *call);
void th_fork_after(const struct th_call *call);
/* `script` (may be NULL) is set if the path is a script; the class is that of its interpreter. */
enum th_class th_classify(int dirfd, const char *path, int flags, bool *script);

void th_leave(void *at, size_t bytes);
void th_unleave(void *at);

/* Numbers of patched sites and of sites in code that could not be written. */
struct th_patched {
	unsigned int sites, failed;
};
struct th_patched th_patch_all(const struct th_program *program);

#endif
