// SPDX-License-Identifier: Apache-2.0
/* What an open is for: the kernel does not say it in its question, but the waiting call does. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent.h"

#define TRIES 50 /* while it is not asleep yet */

/* Which argument has the flags. */
static const struct {
	long nr;
	int flags;
} opens[] = {
#ifdef SYS_open
	{SYS_open, 1},
#endif
	{SYS_openat, 2},
};

static bool read_call(pid_t thread, char *text, size_t room)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/syscall", thread);
	for (int i = 0; i < TRIES; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);

		if (fd >= 0)
			close(fd);
		if (n <= 0)
			return false;
		text[n] = 0;
		if (strncmp(text, "running", 7))
			return true;
		sched_yield();
	}
	return false;
}

/* True also where the call cannot be told or is another one. */
bool wants_to_write(pid_t thread)
{
	unsigned long arg[6];
	char text[256];
	long nr;

	if (!read_call(thread, text, sizeof(text)) ||
	    sscanf(text, "%ld %lx %lx %lx", &nr, &arg[0], &arg[1], &arg[2]) != 4)
		return true;
	for (size_t i = 0; i < sizeof(opens) / sizeof(*opens); i++)
		if (opens[i].nr == nr)
			return (arg[opens[i].flags] & (O_ACCMODE | O_CREAT)) != O_RDONLY;
	return true;
}
