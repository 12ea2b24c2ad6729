// SPDX-License-Identifier: Apache-2.0
/* Makes every call of interest, and calls the observers before and after it. */
#include <asm/errno.h>
#include "bare.h"

unsigned char th_actions[TH_CALLS];
unsigned char th_quick[TH_QUICK];
unsigned long th_checked;

static const struct {
	unsigned short nr;
	unsigned char action;
} core_calls[] = {
	{__NR_open, TH_ACT_CREATES},  {__NR_openat, TH_ACT_CREATES}, {__NR_openat2, TH_ACT_CREATES},
	{__NR_creat, TH_ACT_CREATES}, {__NR_link, TH_ACT_CREATES},   {__NR_linkat, TH_ACT_CREATES},
	{__NR_execve, TH_ACT_EXEC},   {__NR_execveat, TH_ACT_EXEC},  {__NR_clone, TH_ACT_FORK},
	{__NR_fork, TH_ACT_FORK},     {__NR_vfork, TH_ACT_FORK},     {__NR_clone3, TH_ACT_FORK},
	{__NR_readlink, TH_ACT_EXE},  {__NR_readlinkat, TH_ACT_EXE}, {__NR_mmap, TH_ACT_MAPS},
};

#define MAX_OBSERVERS 8
static const struct th_observer *enabled[MAX_OBSERVERS];
static unsigned int observers;
static unsigned char wanted_before[TH_CALLS], wanted[TH_CALLS]; /* one bit per observer */
static bool creations;

long th_dispatch(struct th_call *call);

static void want(const unsigned short *calls, unsigned char *by_whom, enum th_action action)
{
	for (; calls && *calls < TH_CALLS; calls++) {
		by_whom[*calls] |= (unsigned char)(1U << observers);
		th_actions[*calls] |= (unsigned char)action;
	}
}

/* Set th_quick for transfers that a single observer wants, and only after the call. */
static void choose_quick(void)
{
	static const unsigned char calls[] = {__NR_read, __NR_write, __NR_pread64, __NR_pwrite64};

	for (unsigned int i = 0; i < sizeof(calls); i++) {
		unsigned int who = wanted[calls[i]];

		if (who && !(who & (who - 1)) && th_actions[calls[i]] == TH_ACT_AFTER)
			th_quick[calls[i]] = enabled[__builtin_ctz(who)]->quick;
	}
}

/* Start the observers that the environment enables; false: none. */
bool th_dispatch_start(const struct th_program *program)
{
	for (const struct th_observer *const *at = th_observers; *at; at++) {
		const char *value = th_variable(program->envp, (*at)->variable);

		if (!value || !*value || observers == MAX_OBSERVERS ||
		    (th_is_bare() && !(*at)->bare) || !(*at)->start(value, program))
			continue;
		want((*at)->before_calls, wanted_before, TH_ACT_BEFORE);
		want((*at)->calls, wanted, TH_ACT_AFTER);
		creations |= !!(*at)->created;
		enabled[observers++] = *at;
	}
	for (unsigned int i = 0; i < sizeof(core_calls) / sizeof(*core_calls); i++)
		if ((creations || core_calls[i].action != TH_ACT_CREATES) &&
		    core_calls[i].action != (th_is_bare() ? TH_ACT_MAPS : TH_ACT_EXE))
			th_actions[core_calls[i].nr] |= core_calls[i].action;
	choose_quick();
	return observers > 0;
}

void th_dispatch_missed(const struct th_program *program)
{
	for (const struct th_observer *const *at = th_observers; *at; at++) {
		const char *value = th_variable(program->envp, (*at)->variable);

		if (value && *value && (*at)->missed)
			(*at)->missed(value);
	}
}

static bool is_in(const unsigned short *calls, int nr)
{
	for (; calls && *calls < TH_CALLS; calls++)
		if (*calls == nr)
			return true;
	return false;
}

/* Whether any observer, enabled or not, wants calls of this number. */
bool th_wanted_by_any(int nr)
{
	for (const struct th_observer *const *at = th_observers; *at; at++)
		if (is_in((*at)->before_calls, nr) || is_in((*at)->calls, nr))
			return true;
	for (unsigned int i = 0; i < sizeof(core_calls) / sizeof(*core_calls); i++)
		if (core_calls[i].nr == nr)
			return true;
	return false;
}

#define NOTIFY(method, ...)                                                                        \
	for (unsigned int i = 0; i < observers; i++)                                               \
		if (enabled[i]->method)                                                            \
	enabled[i]->method(__VA_ARGS__)

void th_created(int dirfd, const char *path, int fd)
{
	NOTIFY(created, dirfd, path, fd);
}

static void notify_before(struct th_call *call)
{
	for (unsigned int who = wanted_before[call->nr]; who; who &= who - 1)
		enabled[__builtin_ctz(who)]->before(call);
}

static void notify_after(const struct th_call *call)
{
	for (unsigned int who = wanted[call->nr]; who; who &= who - 1)
		enabled[__builtin_ctz(who)]->after(call);
}

static inline __attribute__((always_inline)) long make_call(const struct th_call *call)
{
	return th_sys6(call->nr, call->arg[0], call->arg[1], call->arg[2], call->arg[3],
		       call->arg[4], call->arg[5]);
}

/* Execute the command that an observer has instead; returns if there is none or it fails. */
static void execute_other(const struct th_call *call)
{
	for (unsigned int i = 0; i < observers; i++) {
		size_t bytes = 0;
		char **argv = enabled[i]->replacing ? enabled[i]->replacing(call, &bytes) : NULL;

		if (!argv)
			continue;
		struct th_call other = {.nr = __NR_execve,
					.arg = {(long)argv[0], (long)argv, call->arg[2]}};

		NOTIFY(executing, &other, TH_CLASS_DYNAMIC);
		th_exec_instead(&other, bytes, enabled[i]->variable);
		NOTIFY(not_executed, &other);
	}
}

static long execute(struct th_call *call)
{
	if (!th_exec_readable(call))
		return make_call(call);
	execute_other(call);
	enum th_class class = th_exec_class(call);

	NOTIFY(executing, call, class);
	call->ret = th_exec(call, class);
	NOTIFY(not_executed, call);
	return call->ret;
}

void th_tell_incomplete(void)
{
	NOTIFY(incomplete);
}

void th_tell_forking(unsigned long flags, unsigned long long *began)
{
	NOTIFY(forking, flags, began);
}

void th_tell_forked(long pid, unsigned long flags, unsigned long long began)
{
	NOTIFY(forked, pid, flags, began);
}

static long check(struct th_call *call)
{
	th_checked++;
	return call->ret = -EBADF;
}

static void notify_done(struct th_call *call, unsigned char action)
{
	if ((action & TH_ACT_CREATES) && !th_failed(call->ret))
		th_check_created(call);
	if ((action & TH_ACT_MAPS) && !th_failed(call->ret))
		th_mapped(call);
	if (action & TH_ACT_AFTER)
		notify_after(call);
}

long th_dispatch(struct th_call *call)
{
	unsigned char action = (unsigned long)call->nr < TH_CALLS ? th_actions[call->nr] : 0;

	if (!action)
		return make_call(call);
	if (action & (TH_ACT_EXEC | TH_ACT_CHECK))
		return action & TH_ACT_CHECK ? check(call) : execute(call);
	if ((action & TH_ACT_EXE) && th_true_exe(call))
		return call->ret;
	if (action & TH_ACT_BEFORE)
		notify_before(call);
	call->ret = make_call(call);
	notify_done(call, action);
	return call->ret;
}

#pragma weak th_quick_after /* missing if linked with other observers */

#define CANCELED 8 /* bit of the thread's state */

/*
 * Makes a cancellable call by `function` of the C library. False: continue there unobserved. The
 * unwinder of a static program does not find the library's frames: only calls that may create a
 * file are intercepted there. They rarely block; a thread cancelled then ends at its next call.
 */
bool th_dispatch_cancel(struct th_call *call, const void *function, const int *thread)
{
	unsigned char action = th_actions[call->nr];

	if (action & TH_ACT_CHECK) {
		check(call);
		return true;
	}
	if (th_is_bare() && ((*thread & CANCELED) || !th_may_create(call)))
		return false;
	if (action & TH_ACT_BEFORE)
		notify_before(call);
	call->ret = th_is_bare() ? make_call(call) : th_call_cancel(call, function, thread);
	if (call->nr >= TH_QUICK || !th_quick[call->nr])
		notify_done(call, action);
	else if (call->ret > 0)
		th_quick_after(call->arg[0], (unsigned long)call->nr, call->arg[3], call->ret);
	return true;
}
