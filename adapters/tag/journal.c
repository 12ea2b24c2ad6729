// SPDX-License-Identifier: Apache-2.0
/*
 * The journal of changes, .tracehint/journal below the working directory, in the format of
 * adapters/apply/journal.py, so that `tracehint apply --undo` can undo a script, and vice versa.
 * Another user may have planted the file: only a regular file of the caller in a directory of the
 * caller is used.
 */
#define _GNU_SOURCE
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER ".tracehint"
#define FILE_NAME "journal"
#define JOURNAL FOLDER "/" FILE_NAME
#define MAX_JOURNAL (1L << 30)
#define MAX_LINE (2 * (MAX_PATH + 2 * MAX_VALUE) + MAX_NAME + 64)

static int refuse(const char *name, const char *why)
{
	fprintf(stderr, "cannot use %s: %s; move %s away\n", name, why, FOLDER);
	return -1;
}

/* Print a message and return -1 unless only the caller can have written to it. */
static int check_own(int fd, bool file, const char *name)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return refuse(name, strerror(errno));
	if (file && !S_ISREG(st.st_mode))
		return refuse(name, "it is not a regular file");
	if (st.st_uid != geteuid())
		return refuse(name, "it belongs to another user");
	if (st.st_mode & 022)
		return refuse(name, "other users may write to it");
	if (file && st.st_nlink != 1)
		return refuse(name, "it has several hard links");
	return 0;
}

/* Remove a last line that a crash cut off, so that the next line starts cleanly. */
static int end_cut_line(int fd)
{
	static char tail[MAX_LINE];
	off_t size = lseek(fd, 0, SEEK_END);
	off_t start = size > MAX_LINE ? size - MAX_LINE : 0;
	ssize_t n = size < 0 ? -1 : pread(fd, tail, (size_t)(size - start), start);

	if (n <= 0 || tail[n - 1] == '\n')
		return (int)n;
	char *last = memrchr(tail, '\n', (size_t)n);
	return ftruncate(fd, start + (last ? last + 1 - tail : 0));
}

int journal_open(struct journal *j, bool create)
{
	int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

	j->fd = -1;
	if (create && mkdir(FOLDER, 0700) < 0 && errno != EEXIST)
		return refuse(FOLDER, strerror(errno));
	j->folder = open(FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (j->folder < 0)
		return errno == ENOENT ? 0 : refuse(FOLDER, strerror(errno));
	if (check_own(j->folder, false, FOLDER) < 0)
		return -1;
	j->fd = openat(j->folder, FILE_NAME, flags | (create ? O_CREAT : 0), 0600);
	if (j->fd < 0)
		return errno == ENOENT ? 0 : refuse(JOURNAL, strerror(errno));
	if (check_own(j->fd, true, JOURNAL) < 0)
		return -1;
	if (flock(j->fd, LOCK_EX | LOCK_NB) < 0)
		return refuse(JOURNAL, "another apply is running below this directory");
	return end_cut_line(j->fd) < 0 ? refuse(JOURNAL, strerror(errno)) : 0;
}

static char *put_hex(char *to, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to += sprintf(to, "%02x", ((const unsigned char *)bytes)[i]);
	return to;
}

static char *put_value(char *to, const struct value *v)
{
	if (!v->set)
		return stpcpy(to, "-");
	return put_hex(stpcpy(to, "0x"), v->bytes, v->length);
}

int journal_add(struct journal *j, const struct change *c)
{
	static char line[MAX_LINE];
	char *end = stpcpy(stpcpy(line, c->op), "\t");

	if (strcmp(c->path, "."))
		end = put_hex(end, c->path, strlen(c->path));
	end = stpcpy(stpcpy(stpcpy(end, "\t"), c->name), "\t");
	end = stpcpy(put_value(end, &c->old), "\t");
	end = put_hex(stpcpy(end, "0x"), c->new.bytes, c->new.length);
	end += sprintf(end, "\t%llu\n", c->inode);
	ssize_t done = write(j->fd, line, (size_t)(end - line));
	if (done >= 0 && done != end - line)
		errno = ENOSPC;
	return done == end - line ? 0 : -1;
}

/* Parse the value of a field; false: not a value. */
static bool read_value(const char *text, struct value *v)
{
	v->length = 0;
	v->set = strcmp(text, "-") != 0;
	v->bytes[0] = 0;
	if (!v->set)
		return true;
	if (strncmp(text, "0x", 2) || decode_hex(text + 2, v->bytes, &v->length) < 0)
		return false;
	v->bytes[v->length] = 0;
	return true;
}

bool read_change(char *line, struct change *c)
{
	char *fields[6], *rest = line, *end;
	struct value path;
	int n = 0;

	while (n < 6 && (fields[n] = strsep(&rest, "\t")))
		n++;
	if (n < 6 || rest || strlen(fields[2]) >= sizeof(c->name))
		return false;
	path.length = 0;
	if (decode_hex(fields[1], path.bytes, &path.length) < 0 ||
	    memchr(path.bytes, 0, path.length) || path.length >= sizeof(c->path))
		return false;
	path.bytes[path.length] = 0;
	c->op = fields[0];
	strcpy(c->path, path.length ? (char *)path.bytes : ".");
	strcpy(c->name, fields[2]);
	c->inode = strtoull(fields[5], &end, 10);
	return !*end && read_value(fields[3], &c->old) && read_value(fields[4], &c->new);
}

char *journal_read(struct journal *j, size_t *size)
{
	struct stat st;
	size_t got = 0;

	*size = 0;
	errno = 0;
	if (j->fd < 0 || fstat(j->fd, &st) < 0)
		return NULL;
	errno = EFBIG;
	if (st.st_size > MAX_JOURNAL)
		return NULL;
	char *text = malloc((size_t)st.st_size + 1);
	while (text && got < (size_t)st.st_size) {
		ssize_t more = pread(j->fd, text + got, (size_t)st.st_size - got, (off_t)got);

		if (more <= 0)
			break;
		got += (size_t)more;
	}
	*size = got;
	return text;
}

void journal_remove(struct journal *j)
{
	if (j->fd >= 0)
		unlinkat(j->folder, FILE_NAME, 0);
	if (j->folder >= 0)
		rmdir(FOLDER);
}
