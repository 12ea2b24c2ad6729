// SPDX-License-Identifier: Apache-2.0
/* Storage classes of MooseFS. Its tool sets them by path: open files are named by /proc. */
#define _GNU_SOURCE
#include "tag.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int assign_class(const int *fds, int count, const char *name)
{
	char paths[MAX_BATCH][32], class[MAX_CLASS],
		*words[MAX_BATCH + 3] = {"mfssetsclass", class};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status;

	snprintf(class, sizeof(class), "%s", name);
	for (int i = 0; i < count; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", fds[i]);
		fcntl(fds[i], F_SETFD, 0);
		words[i + 2] = paths[i];
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	int error = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (!error && (waitpid(pid, &status, 0) != pid || status))
		error = EIO;
	return error;
}

void class_set(struct batch *b)
{
	char name[MAX_CLASS];
	int error = EINVAL;

	if (b->count && class_name(b->value, name, sizeof(name)) == 0)
		error = assign_class(b->fds, b->count, name);
	if (b->count && error)
		complain("cannot set a storage class", error);
	while (b->count)
		close(b->fds[--b->count]);
}

int class_put(int fd, const char *name)
{
	return assign_class(&fd, 1, name);
}

/* Extract the name, perhaps in quotes, that the tool prints after the path. */
static void extract_name(char *text, char *out, size_t size)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	char *colon = strrchr(text, ':');
	char *start = colon ? colon + 1 : text;

	start += strcspn(start, letters);
	start[strspn(start, letters)] = 0;
	snprintf(out, size, "%s", start);
}

int class_get(int fd, char *out, size_t size)
{
	char path[32], text[4096] = "", *words[] = {"mfsgetsclass", path, NULL};
	posix_spawn_file_actions_t actions;
	size_t got = 0;
	ssize_t n = 1;
	pid_t pid;
	int ends[2], status;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fcntl(fd, F_SETFD, 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	int error = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	while (!error && n > 0 && got < sizeof(text) - 1) {
		n = read(ends[0], text + got, sizeof(text) - 1 - got);
		got += n > 0 ? (size_t)n : 0;
	}
	close(ends[0]);
	if (!error && (waitpid(pid, &status, 0) != pid || status))
		error = EIO;
	extract_name(text, out, size);
	return error;
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
