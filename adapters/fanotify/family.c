// SPDX-License-Identifier: Apache-2.0
/*
 * Whether a process is one of the run: the run's own process is among its ancestors (orphans are
 * its children: it is their reaper). What was found is believed for a moment only: numbers of
 * processes are given again, but not before all others were.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "agent.h"

#define PLACES 4096	     /* a power of two */
#define BELIEVED_NS 50000000 /* a round of 32,768 numbers takes longer */
#define GENERATIONS 64
#define MANY_NUMBERS 32768

struct member {
	pid_t thread, process, parent;
	bool ours;
	unsigned long long until;
};

static struct member known[PLACES];

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

static long number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

static bool read_text(const char *path, char *to, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, room - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	to[n] = 0;
	return true;
}

/* Process and parent from /proc; false: it has ended. */
static bool ask(struct member *m)
{
	char path[64], text[1024];

	snprintf(path, sizeof(path), "/proc/%d/status", m->thread);
	if (!read_text(path, text, sizeof(text)))
		return false;
	m->process = (pid_t)number_after(text, "\nTgid:");
	m->parent = (pid_t)number_after(text, "\nPPid:");
	return m->process > 0 && m->parent >= 0;
}

static bool numbers_last(void)
{
	static int answer = -1;
	char text[32];

	if (answer < 0)
		answer = read_text("/proc/sys/kernel/pid_max", text, sizeof(text)) &&
			 atol(text) >= MANY_NUMBERS;
	return answer;
}

static struct member *place_of(pid_t thread)
{
	return &known[(unsigned int)thread & (PLACES - 1)];
}

static bool is_known(const struct member *m, pid_t thread, unsigned long long time)
{
	return m->thread == thread && m->until > time;
}

pid_t family_of(pid_t thread, pid_t run)
{
	struct member chain[GENERATIONS];
	unsigned long long time = now();
	unsigned int n = 0;
	bool ours = false;

	for (pid_t at = thread; n < GENERATIONS; at = chain[n++].parent) {
		const struct member *m = place_of(at);

		if (at == run) {
			ours = n > 0;
			break;
		}
		if (is_known(m, at, time)) {
			if (!n)
				return m->ours ? m->process : 0;
			ours = m->ours;
			break;
		}
		chain[n].thread = at;
		if (at <= 1 || at == getpid() || !ask(&chain[n]))
			break;
	}
	for (unsigned int i = 0; i < n; i++) {
		chain[i].ours = ours;
		chain[i].until = numbers_last() ? time + BELIEVED_NS : 0;
		*place_of(chain[i].thread) = chain[i];
	}
	return ours && n ? chain[0].process : 0;
}
