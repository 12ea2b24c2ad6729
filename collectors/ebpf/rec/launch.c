// SPDX-License-Identifier: Apache-2.0
/*
 * Starting the command: it is forked before anything is loaded, announces itself once recording has
 * begun, and only then executes the command. Signals reach it as if it had been started directly.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rec.h"

static const int forwarded[] = {SIGINT,	 SIGQUIT,  SIGTERM, SIGHUP,    SIGUSR1,
				SIGUSR2, SIGWINCH, SIGALRM, SIGVTALRM, SIGCONT};
static sigset_t before;

int signals_block(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++)
		sigaddset(&set, forwarded[i]);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGXFSZ); /* a failed write is counted */
	return sigprocmask(SIG_BLOCK, &set, &before) ? -errno : 0;
}

void signals_restore(void)
{
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int signals_fd(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++)
		sigaddset(&set, forwarded[i]);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Forward signals; those of the terminal reach the whole group, and the command, by themselves. */
void signal_forward(int fd, pid_t pid)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_code != SI_KERNEL)
			kill(pid, (int)info.ssi_signo);
}

/*
 * Load the command's environment. In a program with file capabilities the C library removes
 * LD_LIBRARY_PATH, TMPDIR and others before main; the command has no capabilities and keeps them.
 */
static int environment_take(int fd)
{
	struct stat st;
	size_t have = 0, count = 0;

	if (fstat(fd, &st))
		return -errno;
	size_t size = (size_t)st.st_size;
	char *text = calloc(size + 1, 1);

	while (text && have < size) {
		ssize_t n = pread(fd, text + have, size - have, (off_t)have);

		if (n <= 0)
			return -EIO;
		have += (size_t)n;
	}
	for (size_t i = 0; text && i < size; i++)
		count += !text[i];
	char **names = text ? calloc(count + 1, sizeof(*names)) : NULL;

	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		names[i] = text;
		text += strlen(text) + 1;
	}
	environ = names;
	return 0;
}

static void child_main(int go, int ready, int failed, const struct options *o,
		       unsigned long long cookie)
{
	char **command = o->command;
	char byte;
	int error;

	if (read(go, &byte, 1) != 1)
		_exit(REC_FAILED);		/* the recorder gave up or died: nothing must run */
	syscall(SYS_prctl, cookie, 0, 0, 0, 0); /* no such option: it only announces this process */
	if (write(ready, "r", 1) != 1 || read(go, &byte, 1) != 1)
		_exit(REC_FAILED);
	signals_restore();
	if (o->environment >= 0 && environment_take(o->environment))
		_exit(REC_FAILED);
	execvp(command[0], command);
	error = errno;
	if (write(failed, &error, sizeof(error)) < 0)
		_exit(REC_FAILED);
	_exit(error == ENOENT ? REC_NOT_FOUND : REC_NOT_EXECUTABLE);
}

static int ready_fd = -1;

int child_start(struct child *child, const struct options *o, unsigned long long cookie)
{
	int go[2], failed[2], ready[2];

	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC) || pipe2(ready, O_CLOEXEC))
		return -errno;
	child->pid = fork();
	if (child->pid < 0)
		return -errno;
	if (!child->pid) {
		close(go[1]);
		close(failed[0]);
		close(ready[0]);
		child_main(go[0], ready[1], failed[1], o, cookie);
	}
	close(go[0]);
	close(failed[1]);
	close(ready[1]);
	child->go = go[1];
	child->failed = failed[0];
	ready_fd = ready[0];
	child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	if (child->pidfd < 0)
		return -errno;
	fcntl(child->pidfd, F_SETFD, FD_CLOEXEC);
	return 0;
}

/* Let the child announce itself; returns when it has done so. */
int child_announce(struct child *child)
{
	char byte;

	if (write(child->go, "a", 1) != 1 || read(ready_fd, &byte, 1) != 1)
		return -ECHILD;
	return 0;
}

/* Let the child execute the command. Returns 0, or the positive errno of exec. */
int child_exec(struct child *child)
{
	int error = 0;
	ssize_t n;

	if (write(child->go, "x", 1) != 1)
		return ECHILD;
	do
		n = read(child->failed, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(error) ? error : 0;
}

void child_abandon(struct child *child)
{
	if (child->pid <= 0)
		return;
	close(child->go); /* its read returns 0 and it ends */
	waitpid(child->pid, NULL, 0);
	child->pid = 0;
}
