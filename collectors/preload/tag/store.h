/* SPDX-License-Identifier: Apache-2.0 */
/* A setting in the store's own words, on an open descriptor. */
#ifndef TRACEHINT_TAG_STORE_H
#define TRACEHINT_TAG_STORE_H

#include "table.h"

/* In a process that becomes a store's tool: the path by which the tool finds the open file; NULL: by
 * /proc/self/fd. */
typedef const char *tag_shown(int fd);

/* 0, or a negative error number of the store. `shown` may be NULL. */
long tag_put(const struct tag_table *t, const struct tag_setting *s, int fd, const char *value,
	     size_t size, tag_shown *shown);
/* class.c: a storage class of MooseFS, by the tool of that path. */
long tag_class(const char *tool, const char *name, size_t size, int fd, tag_shown *shown);

#endif
