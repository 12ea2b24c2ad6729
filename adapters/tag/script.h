// SPDX-License-Identifier: Apache-2.0
/* tracehint-tag script: declarations for all its parts; script.c describes the mode. */
#ifndef TRACEHINT_SCRIPT_H
#define TRACEHINT_SCRIPT_H

#include "tag.h"

#define MAX_PATH 4096
#define MAX_NAME 256
#define MAX_TEXT (2 * MAX_VALUE + 3) /* a value in hexadecimal with 0x and NUL */
#define MAX_KEYS 256		     /* distinct attributes of one table */

/* journal.c: the journal of changes, for undo. */
struct journal {
	int folder, fd; /* -1: missing */
};

struct change {
	const char *op; /* session, made, set */
	char path[MAX_PATH], name[MAX_NAME];
	struct value old, new;
	unsigned long long inode; /* of a created file or directory */
};

/* Open and lock it; without `create` it may be missing. -1 after a message: unusable. */
int journal_open(struct journal *j, bool create);
/* Append a line in one write; -1 and errno. */
int journal_add(struct journal *j, const struct change *c);
/* Read all its lines; the caller frees them. NULL and errno, which is 0 without a journal. */
char *journal_read(struct journal *j, size_t *size);
/* Parse a line without its newline; false: not written by tracehint. */
bool read_change(char *line, struct change *c);
void journal_remove(struct journal *j);

/* make.c: below the working directory; as root, for the owner of the parent directory. */
/* Create a directory, or an empty file; its inode, or 0 and errno. */
ino_t make_folder(const char *path);
ino_t make_empty(const char *path);

/* script.c: the whole call; the table is on standard input. */
struct job {
	bool dry, quiet, failed;
	char store[MAX_PATH];	       /* of the table */
	char keys[MAX_KEYS][MAX_NAME]; /* attributes that the table sets */
	int key_count;
	struct journal journal;
};

int script(const char *mode, bool quiet);
/* Print a line about a path, unless quiet. */
void say(const struct job *j, const char *verb, const char *path, const char *remark);
/* Print a line about an error. */
void fail(struct job *j, const char *path, const char *why);
/* Open a file or directory that is not outside, nor, as root, hard-linked. -1 and errno. */
int open_checked(const char *path);
/* Return the message for an error of open_checked. */
const char *why_not(int error);
/* Whether a table or journal may set this attribute at all. */
bool may_set(const char *name);

struct row {
	char kind[8], path[MAX_PATH], name[MAX_NAME], value[MAX_TEXT], remark[MAX_NAME];
};

/* undo.c: --undo, after the rows of the table were remembered. */
void remember_row(struct job *j, const struct row *r);
void undo_journal(struct job *j);

#endif
