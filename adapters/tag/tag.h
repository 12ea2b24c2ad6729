// SPDX-License-Identifier: Apache-2.0
/* tracehint-tag: declarations for all its parts; tracehint-tag.c describes the program. */
#ifndef TRACEHINT_TAG_H
#define TRACEHINT_TAG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MFS_CLASS "mfs:sclass"
#define MARK 1 /* seconds since the epoch */
#define MAX_BATCH 64
#define MAX_CLASS 256 /* bytes of a class or pool name, with NUL */
#define MAX_VALUE 4096

/* Print one line on standard error, the first time only. */
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
/* Read the next record; false at the end, or if the rest is not a record. */
bool table_next(struct table *t, struct record *r);

/* beneath.c: files below the working directory, not through links or "..". -1 and errno. */
int open_beneath(const char *path, int flags, mode_t mode);
/* Open the directory that holds `path`; *name is its last component. */
int open_parent(const char *path, const char **name);
/* Create an empty file with the time stamp MARK. */
int make_file(const char *path);

/* attribute.c: attributes of open files, including the storage class of MooseFS. */
struct value {
	unsigned char bytes[MAX_VALUE + 1]; /* ends with a NUL byte that is not counted */
	size_t length;
	bool set;
};

/* Decode hexadecimal digits to at most MAX_VALUE bytes. -1: not hexadecimal, or too long. */
int decode_hex(const char *hex, unsigned char *out, size_t *length);
/* Decode a value of a table: hexadecimal, or a plain name. -1: neither. */
int value_of(const char *name, const char *text, struct value *v);
/* Read the value of an open file. -1 and errno. */
int value_now(int fd, const char *name, struct value *v);
int value_put(int fd, const char *name, const struct value *v);
bool value_same(const struct value *a, const struct value *b);
/* Set the attribute of a record on an open file, unless it has the value already. */
void set_attribute(int fd, const struct record *r);
/* Copy the name of a class or pool to `out`; this host's short name replaces @host. */
int class_name(const char *value, char *out, size_t size);

/* mfs_class.c: files for the same storage class of MooseFS, set by one call of its tool. */
struct batch {
	const char *value;
	int fds[MAX_BATCH];
	int count;
};

/* Add a duplicate of the descriptor; a batch that is full or differs in class is set first. */
void class_add(struct batch *b, int fd, const char *value);
/* Set the class of the files in the batch and empty it. */
void class_set(struct batch *b);
/* Set the class of one file; 0 or an error number. */
int class_put(int fd, const char *name);
/* Read the class of one file; 0 or an error number. */
int class_get(int fd, char *out, size_t size);

/* command.c: execute the command; return the shell's status (126, 127) if that fails. */
int become(char **command);
/* Run the command as a child and pass on signals; return a wait status. */
int run(char **command);
/* Return the exit status, or end by the signal that ended the command. */
int end_like(int status);

#endif
