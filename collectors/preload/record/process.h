/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about processes tell each other. */
#ifndef TRACEHINT_PROCESS_H
#define TRACEHINT_PROCESS_H

#include "record.h"

/* Kept by a child by fork: who its parent was. */
struct image {
	unsigned int epoch, cwd, exe, root, stopped, follow;
};
extern struct image image;

/* process.c: a new epoch with `room` bytes for texts behind its record. */
struct th_process_page *epoch_new(unsigned int room);
void vforked_done(int pid);

/* arguments.c: bytes that the texts need; put arguments and markers behind each other. */
unsigned int arguments_size(char *const *argv);
void put_arguments(struct rec *rec, char *const *argv, char *const *envp);

#endif
