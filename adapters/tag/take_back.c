// SPDX-License-Identifier: Apache-2.0
/*
 * --undo of a script: remove what it set, where nobody changed it since; then set the values from
 * before and remove what was made, as the journal says. Of the journal only attributes of the
 * table are set, and a record that is refused stays in it.
 */
#define _GNU_SOURCE
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static bool in_table(const struct job *j, const char *name)
{
	for (int i = 0; i < j->key_count; i++)
		if (!strcmp(j->keys[i], name))
			return true;
	return false;
}

static void remember(struct job *j, const char *name)
{
	if (in_table(j, name) || j->key_count == MAX_KEYS)
		return;
	snprintf(j->keys[j->key_count++], MAX_NAME, "%s", name);
}

void take_back(struct job *j, const struct row *r)
{
	const char *name = r->name;
	struct value want, now;

	if (!may_set(name) || value_of(name, r->value, &want) < 0) {
		fail(j, r->path, "refused: not an attribute and value of a table");
		return;
	}
	remember(j, name);
	if (!strcmp(name, MFS_CLASS) || begins(name, "ceph.file.layout") ||
	    begins(name, "ceph.dir.pin"))
		return; /* changed back, see restore */
	int fd = open_checked(r->path);
	if (fd < 0) {
		if (errno != ENOENT)
			fail(j, r->path, why_not(errno));
		return;
	}
	if (!strcmp(name, "ceph.dir.layout.pool"))
		name = "ceph.dir.layout";
	if (value_now(fd, r->name, &now) < 0)
		fail(j, r->path, strerror(errno));
	else if (value_same(&now, &want)) {
		if (fremovexattr(fd, name) < 0)
			fail(j, r->path, strerror(errno));
		else
			say(j, "unset", r->path, r->remark);
	}
	close(fd);
}

static void restore(struct job *j, const char *path, const char *name, const char *text)
{
	struct value old, now;
	struct stat st;

	if (!may_set(name) || !in_table(j, name) || value_of(name, text, &old) < 0) {
		fail(j, path, "refused: the journal sets an attribute that the table does not");
		return;
	}
	int fd = open_checked(path);
	if (fd < 0) {
		if (errno != ENOENT)
			fail(j, path, why_not(errno));
		return;
	}
	bool always = !strcmp(name, MFS_CLASS) || begins(name, "ceph.dir.pin");
	bool layout = begins(name, "ceph.file.layout");
	if (fstat(fd, &st) < 0 || value_now(fd, name, &now) < 0)
		fail(j, path, strerror(errno));
	else if (layout && st.st_size)
		say(j, "left:", path, "it holds data");
	else if ((always || layout || !now.set) && value_put(fd, name, &old) < 0)
		fail(j, path, strerror(errno));
	close(fd);
}

/* The field that ends before `at`, which moves to its start. */
static const char *field_before(const char *text, size_t *at)
{
	(*at)--;
	while (*at && text[*at - 1])
		(*at)--;
	return text + *at;
}

/* A directory that is still empty, or a file that nobody wrote to. */
static void unmake(const char *path)
{
	struct stat st;
	const char *name;
	int fd = open_checked(path);

	if (fd < 0) /* not there any more, or something else */
		return;
	close(fd);
	int folder = open_parent(path, &name);
	if (folder < 0)
		return;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode))
			unlinkat(folder, name, AT_REMOVEDIR);
		else if (S_ISREG(st.st_mode) && st.st_size == 0)
			unlinkat(folder, name, 0);
	}
	close(folder);
}

static void read_failed(struct job *j, const char *text, size_t size)
{
	if (!text && size == 0 && errno)
		fail(j, ".tracehint", strerror(errno));
}

void take_back_notes(struct job *j)
{
	size_t size;
	errno = 0;
	char *text = notes_read(&j->notes, OLD, &size);

	read_failed(j, text, size);
	for (size_t at = 0; text && at < size;) {
		const char *fields[3];
		int n = 0;

		for (; n < 3 && at < size && memchr(text + at, 0, size - at); n++) {
			fields[n] = text + at;
			at += strlen(text + at) + 1;
		}
		if (n < 3)
			break; /* a crash cut it off: that change was not made */
		restore(j, fields[0], fields[1], fields[2]);
	}
	free(text);
	errno = 0;
	text = notes_read(&j->notes, MADE, &size);
	read_failed(j, text, size);
	while (text && size && text[size - 1])
		size--;
	while (text && size) /* the deepest was made last */
		unmake(field_before(text, &size));
	free(text);
	if (!j->failed)
		notes_remove(&j->notes);
}
