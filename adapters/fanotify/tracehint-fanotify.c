// SPDX-License-Identifier: Apache-2.0
/*
 * tracehint-fanotify TABLE PID PLACE...: hints by the kernel's questions about opens on the mounts of
 * the places, for the descendants of PID. Ends with its standard input. On standard output a line
 * for each thing that its caller has to know: "ready", "failed WHY", "killed SIGNAL", "stuck",
 * "gone" (no agent any more).
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "agent.h"

#define AGENTS 100 /* one after the other */
#define LOOK_MS 100
#define BEGIN_MS 2
#define DYING_MS 1000
#define PATIENCE 20 /* looks at an agent that does nothing */

enum outcome { ENDED, DIED, STUCK, REFUSED };

static void say(const char *what, const char *more)
{
	printf("%s%s%s\n", what, more ? " " : "", more ? more : "");
	fflush(stdout);
}

/* Whether our standard input has ended: so has the run. */
static bool run_ended(int wait_ms)
{
	struct pollfd wait = {.fd = 0, .events = POLLIN};
	char byte;

	return poll(&wait, 1, wait_ms) > 0 && read(0, &byte, 1) <= 0;
}

static pid_t begin(const struct job *job, struct shared *shared)
{
	pid_t watchdog = getpid(), pid;

	shared->ready = 0;
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != watchdog)
		_exit(0);
	close(0);
	close(1);
	serve(job, shared);
	_exit(2);
}

/* Kills it; one that cannot even die holds up nobody else. */
static void end(pid_t agent, int *status)
{
	struct timespec pause = {.tv_nsec = 1000000};

	kill(agent, SIGKILL);
	for (int i = 0; i < DYING_MS && !waitpid(agent, status, WNOHANG); i++)
		nanosleep(&pause, NULL);
}

static enum outcome watch(pid_t agent, struct shared *shared, int *status)
{
	unsigned int last = 0, idle = 0;
	bool told = false;

	for (;;) {
		bool ended = run_ended(told ? LOOK_MS : BEGIN_MS);

		if (shared->ready > 0 && !told) {
			say("ready", NULL);
			told = true;
		}
		if (waitpid(agent, status, WNOHANG) == agent)
			return shared->ready < 0 ? REFUSED : DIED;
		idle = told && shared->beat == last ? idle + 1 : 0;
		last = shared->beat;
		if (!ended && idle < PATIENCE)
			continue;
		end(agent, status);
		return ended ? ENDED : STUCK;
	}
}

static int guard(const struct job *job, struct shared *shared)
{
	char number[16];

	for (int i = 0; i < AGENTS; i++) {
		int status = 0;
		pid_t agent = begin(job, shared);

		if (agent < 0)
			break;
		switch (watch(agent, shared, &status)) {
		case ENDED:
			return 0;
		case REFUSED:
			say("failed", shared->why);
			return 1;
		case STUCK:
			say("stuck", NULL);
			break;
		case DIED:
			snprintf(number, sizeof(number), "%d",
				 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
			say("killed", number);
		}
	}
	say("gone", NULL);
	return 1;
}

int main(int argc, char **argv)
{
	struct job job;

	if (argc < 4) {
		fputs("usage: tracehint-fanotify TABLE PID PLACE...\n", stderr);
		return 2;
	}
	job.table = argv[1];
	job.run = (pid_t)atol(argv[2]);
	job.mounts = (const char *const *)(argv + 3);
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED) {
		perror("tracehint-fanotify");
		return 1;
	}
	setsid(); /* nobody stops or ends us with the terminal */
	signal(SIGPIPE, SIG_IGN);
	stay_awake();
	return guard(&job, shared);
}
