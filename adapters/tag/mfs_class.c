// SPDX-License-Identifier: Apache-2.0
/* MooseFS is set by its own tool. It takes paths: the open files are named through /proc. */
#define _GNU_SOURCE
#include "tag.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void class_set(struct batch *b)
{
	char name[MAX_CLASS], paths[MAX_BATCH][32], *words[MAX_BATCH + 3] = {"mfssetsclass", name};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status, error = EINVAL;

	if (b->count && class_name(b->value, name, sizeof(name)) == 0) {
		for (int i = 0; i < b->count; i++) {
			snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", b->fds[i]);
			fcntl(b->fds[i], F_SETFD, 0);
			words[i + 2] = paths[i];
		}
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
		error = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
		posix_spawn_file_actions_destroy(&actions);
		if (!error && (waitpid(pid, &status, 0) != pid || status))
			error = EIO;
	}
	if (b->count && error)
		complain("cannot set a storage class", error);
	while (b->count)
		close(b->fds[--b->count]);
}

void class_add(struct batch *b, int fd, const char *value)
{
	if (b->count == MAX_BATCH || (b->count && strcmp(b->value, value)))
		class_set(b);
	b->value = value;
	fd = dup(fd);
	if (fd >= 0)
		b->fds[b->count++] = fd;
}
