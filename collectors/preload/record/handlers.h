/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of system calls (rows.inc). */
#ifndef TRACEHINT_HANDLERS_H
#define TRACEHINT_HANDLERS_H

#include "record.h"

#define BEFORE(nr, before) void before(struct rec *rec, struct th_call *c);
#define AFTER(nr, after) void after(struct rec *rec, const struct th_call *c);
#define AROUND(nr, before, after) BEFORE(nr, before) AFTER(nr, after)
#include "rows.inc"
#undef BEFORE
#undef AFTER
#undef AROUND

/* metadata.c */
void count_meta(struct rec *rec, enum th_meta kind, const struct th_call *c);
void count_unknown(struct rec *rec, const struct th_call *c);

#endif
