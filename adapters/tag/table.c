// SPDX-License-Identifier: Apache-2.0
/* Read the table of tags: its index and the records of one task. */
#define _GNU_SOURCE
#include "tag.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_LEN 28
#define INDEX_LEN 24

/* Read exactly `size` bytes. Not mapped: a file truncated meanwhile would end the task. */
static bool read_at(int fd, char *out, size_t size, off_t at)
{
	for (size_t got = 0; got < size;) {
		ssize_t n = pread(fd, out + got, size - got, at + (off_t)got);

		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

static bool read_records(struct table *t, int fd, const char *task)
{
	char line[INDEX_LEN + 1] = {0}, header[HEADER_LEN + 1] = {0}, *rest;
	unsigned long long offset, length;
	unsigned long tasks, number = strtoul(task, &rest, 10);
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !read_at(fd, header, HEADER_LEN, 0))
		return false;
	if (sscanf(header, "tracehint-tags 1 %lu", &tasks) != 1 || *rest || number >= tasks)
		return false;
	if (!read_at(fd, line, INDEX_LEN, HEADER_LEN + (off_t)number * INDEX_LEN))
		return false;
	if (sscanf(line, "%llu %llu", &offset, &length) != 2)
		return false;
	if (offset > (unsigned long long)st.st_size || length > st.st_size - offset)
		return false;
	t->data = malloc(length + 1);
	t->at = 0;
	t->end = length;
	return t->data && read_at(fd, t->data, length, (off_t)offset);
}

int table_open(struct table *t, const char *path, const char *task)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	bool found = read_records(t, fd, task);
	close(fd);
	errno = EINVAL;
	return found ? 0 : -1;
}

static const char *next_field(struct table *t)
{
	const char *start = t->data + t->at;
	const char *nul = memchr(start, 0, t->end - t->at);

	if (!nul)
		return NULL;
	t->at = nul - t->data + 1;
	return start;
}

bool table_next(struct table *t, struct record *r)
{
	if (t->at >= t->end)
		return false;
	r->kind = next_field(t);
	r->path = r->kind ? next_field(t) : NULL;
	r->name = r->path ? next_field(t) : NULL;
	r->value = r->name ? next_field(t) : NULL;
	return r->value != NULL;
}
