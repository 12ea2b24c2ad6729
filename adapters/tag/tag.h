// SPDX-License-Identifier: Apache-2.0
/* tracehint-tag: what its parts share. The program is described in tracehint-tag.c. */
#ifndef TRACEHINT_TAG_H
#define TRACEHINT_TAG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MFS_CLASS "mfs:sclass"
#define MARK 1 /* seconds since the epoch */
#define MAX_BATCH 64
#define MAX_CLASS 256 /* of the name of a storage class or pool */
#define MAX_VALUE 4096

/* One line on standard error, the first time only. */
void complain(const char *what, int error);

/* table.c: the records of one task in the table that `tracehint emit` wrote. */
struct table {
	char *data;
	size_t at, end;
};

struct record {
	const char *kind, *path, *name, *value;
};

/* Read the records of one task; -1 and errno. */
int table_open(struct table *t, const char *path, const char *task);
/* The next record; false at the end, or where the rest is no record. */
bool table_next(struct table *t, struct record *r);

/* beneath.c: files below the working directory; no link and no ".." leads out. -1 and errno. */
int open_beneath(const char *path, int flags, mode_t mode);
/* The directory that holds `path`; *name is its last component. */
int open_parent(const char *path, const char **name);
/* Make an empty file with the time stamp MARK. */
int make_file(const char *path);

/* attribute.c: attributes of open files, a storage class of MooseFS among them. */
struct value {
	unsigned char bytes[MAX_VALUE + 1]; /* ends with a NUL byte that is not counted */
	size_t length;
	bool set;
};

/* The bytes, at most MAX_VALUE, that hexadecimal digits stand for. -1: it is something else. */
int decode_hex(const char *hex, unsigned char *out, size_t *length);
/* The value that a table's text stands for: hexadecimal, or a plain name. -1: neither. */
int value_of(const char *name, const char *text, struct value *v);
/* The value that an open file has. -1 and errno. */
int value_now(int fd, const char *name, struct value *v);
int value_put(int fd, const char *name, const struct value *v);
bool value_same(const struct value *a, const struct value *b);
/* Set the attribute of a record on an open file, where it is not so already. */
void set_attribute(int fd, const struct record *r);
/* Into `out`: the name of a class or pool, with the short name of this host in the place of @host. */
int class_name(const char *value, char *out, size_t size);

/* mfs_class.c: files that get the same storage class of MooseFS; one call of its tool sets all. */
struct batch {
	const char *value;
	int fds[MAX_BATCH];
	int count;
};

/* Add an open file, whose descriptor stays the caller's; what is full or differs is set first. */
void class_add(struct batch *b, int fd, const char *value);
/* Set what is in the batch and empty it. */
void class_set(struct batch *b);
/* One file; 0 or an error number. */
int class_put(int fd, const char *name);
/* The class that one file has; 0 or an error number. */
int class_get(int fd, char *out, size_t size);

/* command.c: become the command; returns the shell's status (126, 127) where that fails. */
int become(char **command);
/* Run the command with its signals passed on; returns a status of wait. */
int run(char **command);
/* End as a command with that status ended, by the same signal if need be. */
int end_like(int status);

#endif
