// SPDX-License-Identifier: Apache-2.0
/* The recorder as an observer: passes calls by number to the handlers of rows.inc. */
#include "handlers.h"
#include "process.h"

#define BEFORE(nr, before) __NR_##nr,
#define AFTER(nr, after)
#define AROUND(nr, before, after) __NR_##nr,
static const unsigned short wanted_before[] = {
#include "rows.inc"
	__NR_exit_group, TH_CALLS};
#undef BEFORE
#undef AFTER
#undef AROUND

#define BEFORE(nr, before)
#define AFTER(nr, after) __NR_##nr,
#define AROUND(nr, before, after) __NR_##nr,
static const unsigned short wanted[] = {
#include "rows.inc"
	TH_CALLS};
#undef BEFORE
#undef AFTER
#undef AROUND

/* Calls that do not begin the record of a process which has made no other call yet. */
static const unsigned char quiet[TH_CALLS] = {
	[__NR_close] = 1, [__NR_dup] = 1,	  [__NR_dup2] = 1,  [__NR_dup3] = 1,
	[__NR_fcntl] = 1, [__NR_close_range] = 1, [__NR_lseek] = 1,
};

static struct rec *rec_for(const struct th_call *call)
{
	struct rec *rec = rec_quick();

	if (rec)
		return rec;
	return quiet[call->nr] && !rec_begun() ? NULL : rec_here();
}

static bool start(const char *value, const struct th_program *program)
{
	if (arena_open(value))
		return process_start(program);
	arena_missed(value);
	return false;
}

/* A switch instead of a table of functions, whose addresses the loader would have to write. */
#define AFTER(nr, after)
#define BEFORE(nr, before)                                                                         \
	case __NR_##nr:                                                                            \
		before(rec, call);                                                                 \
		break;
#define AROUND(nr, before, after) BEFORE(nr, before)
static void before_call(struct th_call *call)
{
	if (call->nr == __NR_exit_group) {
		process_exits((int)call->arg[0]);
		return;
	}
	struct rec *rec = rec_for(call);

	if (!rec)
		return;
	switch (call->nr) {
#include "rows.inc"
	}
}
#undef BEFORE
#undef AFTER
#undef AROUND

#define BEFORE(nr, before)
#define AFTER(nr, after)                                                                           \
	case __NR_##nr:                                                                            \
		after(rec, call);                                                                  \
		break;
#define AROUND(nr, before, after) AFTER(nr, after)
static void after_call(const struct th_call *call)
{
	struct rec *rec = rec_for(call);

	if (!rec)
		return;
	switch (call->nr) {
#include "rows.inc"
	}
}
#undef BEFORE
#undef AFTER
#undef AROUND

const struct th_observer th_recorder = {
	.variable = "TRACEHINT_RECORD",
	.quick = true,
	.start = start,
	.missed = arena_missed,
	.before_calls = wanted_before,
	.calls = wanted,
	.before = before_call,
	.after = after_call,
	.incomplete = process_incomplete,
	.forking = process_forking,
	.forked = process_forked,
	.executing = process_executing,
	.not_executed = process_not_executed,
};
