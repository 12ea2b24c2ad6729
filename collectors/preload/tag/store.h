/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a setting to an open file through the interface of the store. */
#ifndef TRACEHINT_TAG_STORE_H
#define TRACEHINT_TAG_STORE_H

#include "table.h"

/* Return 0, or a negative error number of the store. */
long tag_put(const struct tag_table *t, const struct tag_setting *s, int fd, const char *value,
	     size_t size);
/* class.c: set a storage class of MooseFS with the tool of that path. */
long tag_class(const char *tool, const char *name, size_t size, int fd);

#endif
