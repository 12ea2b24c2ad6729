// SPDX-License-Identifier: Apache-2.0
/* An observer that appends one line per event to the file that TRACEHINT_TEST names. */
#include <linux/fcntl.h>
#include "hook.h"

static char path[256];
static unsigned long reads, writes;

static char *word(char *at, const char *text)
{
	for (unsigned int i = 0; text[i] && i < 200; i++)
		*at++ = text[i];
	*at++ = ' ';
	return at;
}

static char *number(char *at, long value)
{
	char digits[24];
	unsigned int n = 0;

	if (value < 0)
		*at++ = '-';
	do
		digits[n++] = (char)('0' + (value < 0 ? -(value % 10) : value % 10));
	while (value /= 10);
	while (n)
		*at++ = digits[--n];
	*at++ = ' ';
	return at;
}

static void say(const char *what, const char *name, long value)
{
	char line[512], *at = word(line, what);

	at = number(at, value);
	at = number(at, th_pid());
	at = word(at, th_vforked() ? "shared" : "own");
	at = word(at, name);
	at[-1] = '\n';
	int fd = (int)th_sys(__NR_open, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

	th_sys(__NR_write, fd, line, at - line);
	th_sys(__NR_close, fd);
}

static bool start(const char *value, const struct th_program *program)
{
	if (th_len(value) >= sizeof(path))
		return false;
	th_copy(path, value, th_len(value) + 1);
	say("start", program->argv[0], program->argc);
	return true;
}

static void created(int dirfd, const char *name, int fd)
{
	(void)dirfd;
	say("created", name, fd);
}

static void executing(const struct th_call *call, enum th_class class)
{
	say("executing", (const char *)call->arg[call->nr == __NR_execve ? 0 : 1], class);
}

static void not_executed(const struct th_call *call)
{
	say("not_executed", "", call->ret);
}

static void forked(long pid, unsigned long flags)
{
	say(flags & TH_CLONE_THREAD ? "thread" : "forked", "", pid);
}

static void before(struct th_call *call)
{
	if (call->nr != __NR_exit_group)
		return;
	say("reads", "", (long)reads);
	say("writes", "", (long)writes);
}

static void after(const struct th_call *call)
{
	reads += call->nr == __NR_read || call->nr == __NR_pread64;
	writes += call->nr == __NR_write || call->nr == __NR_pwrite64;
}

static const unsigned short before_calls[] = {__NR_exit_group, TH_CALLS};
static const unsigned short calls[] = {
	__NR_read, __NR_write, __NR_pread64, __NR_pwrite64, TH_CALLS,
};

static const struct th_observer test = {
	.variable = "TRACEHINT_TEST",
	.start = start,
	.before_calls = before_calls,
	.calls = calls,
	.before = before,
	.after = after,
	.created = created,
	.forked = forked,
	.executing = executing,
	.not_executed = not_executed,
};

const struct th_observer *const th_observers[] = {&test, NULL};
