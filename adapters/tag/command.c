// SPDX-License-Identifier: Apache-2.0
/* Run the task's command: in place of this program, or as its child. */
#define _GNU_SOURCE
#include "tag.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int become(char **command)
{
	execvp(command[0], command);
	int code = errno == ENOENT ? 127 : 126;
	fprintf(stderr, "tracehint-tag: %s: %s\n", command[0], strerror(errno));
	return code;
}

static volatile sig_atomic_t child;

static void forward_signal(int number)
{
	if (child > 0)
		kill(child, number);
}

int run(char **command)
{
	int status, numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
	sigset_t block, before;

	sigfillset(&block);
	sigprocmask(SIG_BLOCK, &block, &before);
	pid_t pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		_exit(become(command));
	}
	if (pid < 0) {
		perror("tracehint-tag: fork");
		return 126 << 8; /* as a wait status */
	}
	child = pid;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		signal(numbers[i], forward_signal);
	sigprocmask(SIG_SETMASK, &before, NULL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	child = 0;
	return status;
}

int end_like(int status)
{
	if (!WIFSIGNALED(status))
		return WIFEXITED(status) ? WEXITSTATUS(status) : status;
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}
