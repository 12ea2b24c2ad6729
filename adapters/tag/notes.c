// SPDX-License-Identifier: Apache-2.0
/*
 * What the script changed, in .tracehint below the working directory: `old` (path, attribute, value
 * from before) and `made` (path), each field ended by a NUL byte. Somebody else may have put them
 * there: only plain files of our own in a plain directory of our own are used.
 */
#define _GNU_SOURCE
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER ".tracehint"
#define MAX_NOTES (1L << 30)

static const char *const names[NOTES] = {[OLD] = FOLDER "/old", [MADE] = FOLDER "/made"};

static const char *inside(enum note which)
{
	return names[which] + sizeof(FOLDER);
}

/* Whether nobody but the caller can have written there; else says why not. */
static bool own(int fd, bool file, const char *name)
{
	struct stat st;
	const char *why = NULL;

	if (fstat(fd, &st) < 0)
		why = strerror(errno);
	else if (file && !S_ISREG(st.st_mode))
		why = "it is no regular file";
	else if (st.st_uid != geteuid())
		why = "it belongs to another user";
	else if (st.st_mode & 022)
		why = "others may write to it";
	else if (file && st.st_nlink != 1)
		why = "it has several hard links";
	if (why)
		fprintf(stderr, "cannot use %s: %s; move %s away\n", name, why, FOLDER);
	return !why;
}

static int refused(const char *name)
{
	fprintf(stderr, "cannot use %s: %s; move %s away\n", name, strerror(errno), FOLDER);
	return -1;
}

int notes_open(struct notes *n, bool create)
{
	int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

	for (int i = 0; i < NOTES; i++)
		n->fds[i] = -1;
	if (create && mkdir(FOLDER, 0700) < 0 && errno != EEXIST)
		return refused(FOLDER);
	n->folder = open(FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (n->folder < 0)
		return errno == ENOENT ? 0 : refused(FOLDER);
	if (!own(n->folder, false, FOLDER))
		return -1;
	for (int i = 0; i < NOTES; i++) {
		n->fds[i] = openat(n->folder, inside(i), flags | (create ? O_CREAT : 0), 0600);
		if (n->fds[i] < 0 && errno != ENOENT)
			return refused(names[i]);
		if (n->fds[i] >= 0 && !own(n->fds[i], true, names[i]))
			return -1;
	}
	return 0;
}

int notes_add(struct notes *n, enum note which, const char *const *fields, int count)
{
	char line[MAX_PATH + MAX_NAME + 2 * MAX_VALUE + 16];
	size_t length = 0;

	for (int i = 0; i < count; i++) {
		size_t size = strlen(fields[i]) + 1;

		if (size > sizeof(line) - length) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(line + length, fields[i], size);
		length += size;
	}
	ssize_t done = write(n->fds[which], line, length);
	if (done >= 0 && (size_t)done != length)
		errno = ENOSPC;
	return done == (ssize_t)length ? 0 : -1;
}

char *notes_read(struct notes *n, enum note which, size_t *size)
{
	struct stat st;
	char *text = NULL;
	size_t got = 0;

	*size = 0;
	if (n->fds[which] < 0)
		return NULL;
	errno = EFBIG;
	if (fstat(n->fds[which], &st) < 0 || st.st_size > MAX_NOTES)
		return NULL;
	errno = ENOMEM;
	text = malloc((size_t)st.st_size + 1);
	while (text && got < (size_t)st.st_size) {
		ssize_t more = pread(n->fds[which], text + got, (size_t)st.st_size - got, got);

		if (more <= 0)
			break; /* a record that is cut off is not used */
		got += (size_t)more;
	}
	*size = got;
	return text;
}

void notes_remove(struct notes *n)
{
	for (int i = 0; i < NOTES; i++)
		if (n->fds[i] >= 0)
			unlinkat(n->folder, inside(i), 0);
	if (n->folder >= 0)
		rmdir(FOLDER);
}

void notes_close(struct notes *n)
{
	for (int i = 0; i < NOTES; i++)
		if (n->fds[i] >= 0)
			close(n->fds[i]);
	if (n->folder >= 0)
		close(n->folder);
}
