/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracehint-fanotify: sets hints where the kernel asks before each open (FAN_OPEN_PERM, root): of
 * every program of a run, also of those that no library can enter.
 *
 * A watchdog starts the agent, which answers. An agent that ends or hangs is killed, which lets
 * everybody go on who waits for it, and another one takes its place. The agent's main thread opens
 * nothing (it would ask itself); what may take long is done by others while it answers.
 */
#ifndef TRACEHINT_FANOTIFY_AGENT_H
#define TRACEHINT_FANOTIFY_AGENT_H

#include <stdatomic.h>
#include <sys/types.h>
#include "../../collectors/preload/tag/hinter.h"

/* What watchdog and agent share. */
struct shared {
	atomic_uint beat; /* goes on while the agent lives */
	atomic_int ready; /* 1: answers; -1: could not begin, `why` says it */
	char why[512];
};

struct job {
	const char *table;
	pid_t run;		   /* ancestor of all processes of the run */
	const char *const *mounts; /* places on the mounts, ended by NULL */
};

/* wake.c: from now on this process goes on by itself when it is stopped; no call waits for long. */
bool stay_awake(void);

/* serve.c: the agent; returns where it could not begin. */
void serve(const struct job *job, struct shared *shared);
/* Let the program go on whose open gave this descriptor, which is closed. */
void answer(int fd);

/* family.c: the process that a thread belongs to where that is one of the run, else 0. */
pid_t family_of(pid_t thread, pid_t run);

/* wants.c: whether the open that a thread waits in may write or create. */
bool wants_to_write(pid_t thread);

/* opened.c: what is done about a file that a thread opens. */
struct opened {
	struct hinter hinter;
	struct tag_slot slot;
	pid_t run;
	int descriptors; /* /proc/self/fd */
	bool tools;	 /* some settings are made by a store's own tool */
};
enum opened_how {
	OPENED,	      /* answer it */
	OPENED_FULL,  /* and do not ask again: it is an ordinary file that holds something */
	OPENED_LATER, /* somebody else answers */
};
enum opened_how file_opened(struct opened *o, int fd, pid_t thread);

/* beside.c: where a tool finds a file without waiting for the program that makes it. */
void learn_store(const char *place);
const char *shown_beside(int fd);

/* later.c: settings that may take long, by threads of their own. */
bool begin_later(struct hinter *hinter);
bool set_later(const struct tag_slot *slot, int fd, pid_t process);

#endif
