/* SPDX-License-Identifier: Apache-2.0 */
/* Programs without a loader, which the kernel starts with this library as their interpreter. */
#ifndef TRACEHINT_BARE_H
#define TRACEHINT_BARE_H

#include "core.h"

#define TH_TABLE "TRACEHINT_HINTS" /* beside it lie the copies that are executed (enter.c) */

/* enter.c: executes a static program so that it is entered; returns where that could not be. */
void th_exec_entered(const struct th_call *call, enum th_class class, char *const *envp);

/* bare.S: where the kernel begins, and where sites of Go lead to. */
extern const char th_bare_entry[], th_bare_fork_after[];

/* bare.c: whether the call asked for the program's own name, which it has now: not the copy's. */
bool th_true_exe(struct th_call *call);
bool th_is_bare(void);

/* patch.c */
struct text;
unsigned int th_patch_text(const struct text *text, const char *const *entries);
void th_patch_later(const struct text *text);

char *th_fd_name(char *to, int fd); /* "/proc/self/fd/N"; 32 bytes */
const char *th_carried(const char *name);

#endif
