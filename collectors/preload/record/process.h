/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about processes tell each other. */
#ifndef TRACEHINT_PROCESS_H
#define TRACEHINT_PROCESS_H

#include "../hook/core.h"
#include "record.h"

extern const struct th_observer th_recorder;

/* Kept by a child by fork: who its parent was. */
struct image {
	unsigned int epoch, cwd, exe, root, stopped, foreign;
	unsigned int mounts;		 /* the table that `root` began as; 0: that of outside */
	unsigned int remounts;		 /* those when it was read */
	unsigned int space, other_space; /* of processes; enum other_space: of the children */
};
extern struct image image;

/* Why a child's PID namespace may be another one. */
enum other_space { TH_SPACE_CALLED = 1, TH_SPACE_CLONED = 2 };

/* Zeroed in a child by fork. */
extern struct rec *own_rec;

/* This process's record where it has begun and nobody else runs in its memory; NULL: ask rec_here. */
static inline struct rec *rec_quick(void)
{
	struct rec *rec = own_rec;

	return rec->page && !rec->failed && !image.stopped && !th_state->shared &&
			       !__atomic_load_n(&th_state->vforks, __ATOMIC_RELAXED)
		       ? rec
		       : NULL;
}

#define TH_PATH_ROOM 4096

/* programs.c: the name of the program that begins, as the kernel has it. */
unsigned int program_name(struct rec *rec, const struct th_program *program, char *text);
/* A long text that many processes have: the one that another process has put, or a new one. 0: no
 * room. */
unsigned int shared_text(struct rec *rec, const char *text, unsigned int len);

/* mounts.c: the text that absolute names are below; 0: they are as outside. */
unsigned int mounts_text(struct rec *rec);

/* process.c: a new epoch with `room` bytes for texts behind its record; a namespace's number. */
struct th_process_page *epoch_new(unsigned int room);
unsigned int space_of(const char *link);
void vforked_done(int pid);

/* arguments.c: bytes that the texts need; put arguments and markers behind each other. */
unsigned int arguments_size(char *const *argv);
void put_arguments(struct rec *rec, char *const *argv, char *const *envp);

#endif
