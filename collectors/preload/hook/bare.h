/* SPDX-License-Identifier: Apache-2.0 */
/* Programs without a loader, which the kernel starts with this library as their interpreter. */
#ifndef TRACEHINT_BARE_H
#define TRACEHINT_BARE_H

#include "core.h"

#define TH_TABLE "TRACEHINT_HINTS" /* enter.c stores copies of programs next to this file */

/* enter.c: execute a static program with the library; returns on failure. */
void th_exec_entered(const struct th_call *call, enum th_class class, char *const *envp);

/* bare.S: the entries for sites of Go programs. */
extern const char th_bare_entry[], th_bare_fork_after[];

/* bare.c: whether the call read the program's own path; sets the result to the original's path. */
bool th_true_exe(struct th_call *call);
bool th_is_bare(void);

/* patch.c */
struct text;
unsigned int th_patch_text(const struct text *text, const char *const *entries);
void th_patch_later(const struct text *text);

const char *th_carried(const char *name);

#endif
