/* SPDX-License-Identifier: Apache-2.0 */
/* Interface between the files about processes. */
#ifndef TRACEHINT_PROCESS_H
#define TRACEHINT_PROCESS_H

#include "../hook/core.h"
#include "record.h"

extern const struct th_observer th_recorder;

/* State that a child by fork inherits, such as the epoch of its parent. */
struct image {
	unsigned int epoch, cwd, exe, root, stopped, foreign;
	unsigned int mounts;		 /* mount table, the first `root`; 0: the recorder's */
	unsigned int remounts;		 /* arena->remounts when it was read */
	unsigned int space, other_space; /* PID namespace; enum other_space: of the children */
};
extern struct image image;

/* Why a child may have another PID namespace. */
enum other_space { TH_SPACE_CALLED = 1, TH_SPACE_CLONED = 2 };

/* Zeroed in a child by fork. */
extern struct rec *own_rec;

/* Return this process's record if it has begun and no other process runs in its memory, or NULL. */
static inline struct rec *rec_quick(void)
{
	struct rec *rec = own_rec;

	return rec->page && !rec->failed && !image.stopped && !th_state->shared &&
			       !__atomic_load_n(&th_state->vforks, __ATOMIC_RELAXED)
		       ? rec
		       : NULL;
}

#define TH_PATH_ROOM 4096

/* programs.c: the kernel's path of the program that begins. */
unsigned int program_name(struct rec *rec, const struct th_program *program, char *text);
/* Store a long text that many processes have, or reuse the one of another process. 0: no
 * space. */
unsigned int shared_text(struct rec *rec, const char *text, unsigned int len);

/* mounts.c: the text to which absolute names are relative; 0: none, as for the recorder. */
unsigned int mounts_text(struct rec *rec);

/* process.c: a new epoch with `room` bytes for texts after its record; a namespace's number. */
struct th_process_page *epoch_new(unsigned int room);
unsigned int space_of(const char *link);
void vforked_done(int pid);

/* arguments.c: size of the arguments; store arguments and task markers. */
unsigned int arguments_size(char *const *argv);
void put_arguments(struct rec *rec, char *const *argv, char *const *envp);

#endif
