// SPDX-License-Identifier: Apache-2.0
/* Reading the table of tags: its index and the records of one task. */
#define _GNU_SOURCE
#include "tag.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_LEN 28
#define INDEX_LEN 24

int table_open(struct table *t, const char *path, const char *task)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || st.st_size < HEADER_LEN) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	t->size = st.st_size;
	t->data = mmap(NULL, t->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (t->data == MAP_FAILED)
		return -1;

	unsigned long tasks, number;
	unsigned long long offset, length;
	char line[INDEX_LEN + 1] = {0}, header[HEADER_LEN + 1] = {0}, *rest;

	memcpy(header, t->data, HEADER_LEN);
	number = strtoul(task, &rest, 10);
	errno = EINVAL;
	if (sscanf(header, "tracehint-tags 1 %lu", &tasks) != 1 || *rest || number >= tasks)
		return -1;
	size_t entry = HEADER_LEN + (size_t)number * INDEX_LEN;
	if (entry + INDEX_LEN > t->size)
		return -1;
	memcpy(line, t->data + entry, INDEX_LEN);
	if (sscanf(line, "%llu %llu", &offset, &length) != 2)
		return -1;
	if (offset > t->size || length > t->size - offset)
		return -1;
	t->at = offset;
	t->end = offset + length;
	return 0;
}

static const char *field(struct table *t)
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
	r->kind = field(t);
	r->path = r->kind ? field(t) : NULL;
	r->name = r->path ? field(t) : NULL;
	r->value = r->name ? field(t) : NULL;
	return r->value != NULL;
}
