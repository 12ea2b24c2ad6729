// SPDX-License-Identifier: Apache-2.0
/* tracehint-tag script: what its parts share. The mode is described in script.c. */
#ifndef TRACEHINT_SCRIPT_H
#define TRACEHINT_SCRIPT_H

#include "tag.h"

#define MAX_PATH 4096
#define MAX_NAME 256
#define MAX_TEXT (2 * MAX_VALUE + 3) /* a value in hexadecimal with 0x and NUL */
#define MAX_KEYS 256		     /* different attributes of one table */

/* journal.c: what was set and made, kept for undo. */
struct journal {
	int folder, fd; /* -1: not there */
};

struct change {
	const char *op; /* session, made, set */
	char path[MAX_PATH], name[MAX_NAME];
	struct value old, new;
	unsigned long long inode; /* of what was made */
};

/* Open and lock it; without `create` it may be missing. -1 after a message: not to be used. */
int journal_open(struct journal *j, bool create);
/* Append a line in one write; -1 and errno. */
int journal_add(struct journal *j, const struct change *c);
/* All of it, to be freed, ended by a newline; NULL and errno, which is 0 where there is none. */
char *journal_read(struct journal *j, size_t *size);
/* What a line without its newline stands for; false: it was not written by us. */
bool read_change(char *line, struct change *c);
void journal_remove(struct journal *j);

/* make.c: below the working directory; what root makes belongs to the directory's owner. */
/* Make a directory, or an empty file; its inode, or 0 and errno. */
ino_t make_folder(const char *path);
ino_t make_empty(const char *path);

/* script.c: the whole call; the table is on standard input. */
struct job {
	bool dry, quiet, failed;
	char store[MAX_PATH];	       /* that the table is for */
	char keys[MAX_KEYS][MAX_NAME]; /* attributes that the table sets */
	int key_count;
	struct journal journal;
};

int script(const char *mode, bool quiet);
/* A line about a path, unless quiet. */
void say(const struct job *j, const char *verb, const char *path, const char *remark);
/* A line about what went wrong. */
void fail(struct job *j, const char *path, const char *why);
/* Open a target; -1 and errno. What is no file or directory, or leads out, is refused. */
int open_checked(const char *path);
/* What to tell about a target that could not be opened. */
const char *why_not(int error);
/* Whether a table or journal may set this attribute at all. */
bool may_set(const char *name);

struct row {
	char kind[8], path[MAX_PATH], name[MAX_NAME], value[MAX_TEXT], remark[MAX_NAME];
};

/* undo.c: --undo, after the rows of the table. */
void remember_row(struct job *j, const struct row *r);
void undo_journal(struct job *j);

#endif
