// SPDX-License-Identifier: Apache-2.0
/* tracehint-tag script: what its parts share. The mode is described in script.c. */
#ifndef TRACEHINT_SCRIPT_H
#define TRACEHINT_SCRIPT_H

#include "tag.h"

#define MAX_PATH 4096
#define MAX_NAME 256
#define MAX_TEXT (2 * MAX_VALUE + 3) /* a value in hexadecimal with 0x and NUL */
#define MAX_KEYS 256		     /* different attributes of one table */

/* notes.c: what was changed, kept for undo. */
enum note { OLD, MADE, NOTES };

struct notes {
	int folder;
	int fds[NOTES]; /* -1: not there */
};

/* Open them; without `create` they may be missing. -1 after a message: not to be used. */
int notes_open(struct notes *n, bool create);
/* Append one record in one write; -1 and errno. */
int notes_add(struct notes *n, enum note which, const char *const *fields, int count);
/* All of it, to be freed; NULL where there is none, or with a size of 0 and errno. */
char *notes_read(struct notes *n, enum note which, size_t *size);
void notes_remove(struct notes *n);
void notes_close(struct notes *n);

/* make.c: below the working directory; what root makes belongs to the directory's owner. */
/* Make a directory; -1 and errno. */
int make_folder(const char *path);
/* Make an empty file; -1 and errno. */
int make_empty(const char *path);

/* script.c: the whole call; the table is on standard input. */
struct job {
	bool dry, quiet, failed;
	char keys[MAX_KEYS][MAX_NAME]; /* attributes that the table sets */
	int key_count;
	struct notes notes;
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

/* take_back.c: --undo, for the records of the table one by one, then for the notes. */
struct row {
	char kind[8], path[MAX_PATH], name[MAX_NAME], value[MAX_TEXT], remark[MAX_NAME];
};

void take_back(struct job *j, const struct row *r);
void take_back_notes(struct job *j);

#endif
