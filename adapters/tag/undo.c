// SPDX-License-Identifier: Apache-2.0
/*
 * --undo of a script: undoes the journal's changes for the table's store, last one first. Values
 * that were changed since are left, and only attributes of the table are set; the journal is kept
 * if any change is left or refused.
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

static bool in_table(const struct job *j, const char *name)
{
	for (int i = 0; i < j->key_count; i++)
		if (!strcmp(j->keys[i], name))
			return true;
	return false;
}

void remember_row(struct job *j, const struct row *r)
{
	if (r->kind[0] == 'S')
		snprintf(j->store, sizeof(j->store), "%s", r->path);
	else if (may_set(r->name) && !in_table(j, r->name) && j->key_count < MAX_KEYS)
		snprintf(j->keys[j->key_count++], MAX_NAME, "%s", r->name);
}

static int unset(int fd, const char *name)
{
	if (!strcmp(name, "ceph.dir.pin")) /* pins always have a value */
		return fsetxattr(fd, name, "-1", 2, 0);
	if (!strcmp(name, "ceph.dir.pin.distributed"))
		return fsetxattr(fd, name, "0", 1, 0);
	if (!strcmp(name, "ceph.dir.layout.pool"))
		name = "ceph.dir.layout";
	return fremovexattr(fd, name) < 0 && errno != ENODATA ? -1 : 0;
}

/* Restore the old value; false: left or refused. */
static bool restore(struct job *j, const struct change *c)
{
	struct value now;

	if (!may_set(c->name) || !in_table(j, c->name)) {
		fail(j, c->path, "refused: the journal sets an attribute that the table does not");
		return false;
	}
	int fd = open_checked(c->path);
	if (fd < 0) {
		if (errno != ENOENT)
			fail(j, c->path, why_not(errno));
		return errno == ENOENT;
	}
	bool done = true;
	if (value_now(fd, c->name, &now) < 0) {
		fail(j, c->path, strerror(errno));
	} else if (value_same(&now, &c->old)) {
		/* already restored */
	} else if (!value_same(&now, &c->new)) {
		say(j, "left:", c->path, "it has changed since");
		done = false;
	} else if ((c->old.set ? value_put(fd, c->name, &c->old) : unset(fd, c->name)) == 0) {
		say(j, c->old.set ? "restored" : "unset", c->path, c->name);
	} else if (errno == ENOTEMPTY) { /* a layout of Ceph */
		say(j, "left:", c->path, "it holds data");
	} else {
		fail(j, c->path, strerror(errno));
	}
	close(fd);
	return done;
}

/* Remove a created directory or file that is still empty; false: left. */
static bool unmake(struct job *j, const struct change *c)
{
	struct stat st;
	const char *name, *left = NULL;
	int fd = open_checked(c->path);

	if (fd < 0) /* already removed, or another error */
		return errno == ENOENT;
	close(fd);
	int folder = open_parent(c->path, &name);
	if (folder < 0)
		return false;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino != c->inode)
		left = "it is not the one that was created";
	else if (!S_ISDIR(st.st_mode) && st.st_size)
		left = "it has been written to";
	else if (unlinkat(folder, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
		left = strerror(errno);
	close(folder);
	if (left)
		say(j, "left:", c->path, left);
	return !left;
}

/* Undo the session in [text, end), last line first; false: the journal is still needed. */
static bool undo_session(struct job *j, char *text, char *end)
{
	static struct change c;
	char *first = memchr(text, '\n', (size_t)(end - text)) + 1;
	bool done = true;

	*(first - 1) = 0;
	if (!read_change(text, &c) || strcmp(c.path, j->store))
		return false;
	while (end > first) {
		char *line = memrchr(text, '\n', (size_t)(end - 1 - text));

		line = line ? line + 1 : first;
		end[-1] = 0;
		end = line;
		if (!read_change(line, &c))
			fail(j, "", "the journal has a line that tracehint did not write");
		else
			done &= !strcmp(c.op, "set") ? restore(j, &c) : unmake(j, &c);
	}
	return done;
}

void undo_journal(struct job *j)
{
	static const char mark[] = "session\t";
	size_t size;
	char *text = journal_read(&j->journal, &size);
	bool done = true;

	if (!text && errno)
		fail(j, ".tracehint", strerror(errno));
	else if (!text)
		say(j, "no journal:", ".tracehint/journal", "there is nothing to undo");
	while (text && size && text[size - 1] != '\n')
		size--;
	for (char *end = text + size, *start = end; text && start > text;) {
		char *before = memrchr(text, '\n', (size_t)(start - 1 - text));

		start = before ? before + 1 : text;
		if (strncmp(start, mark, sizeof(mark) - 1))
			continue;
		done &= undo_session(j, start, end);
		end = start;
	}
	free(text);
	if (!j->failed && done)
		journal_remove(&j->journal);
}
