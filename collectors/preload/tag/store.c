// SPDX-License-Identifier: Apache-2.0
/* Applies settings: attributes and layouts by fsetxattr, storage classes by the tool of MooseFS. */
#include "store.h"

#define EINVAL 22
#define MAX_KEY 255

/* A key ends with a NUL that is not counted; of a storage class it is the path of the tool. */
long tag_put(const struct tag_table *t, const struct tag_setting *s, int fd, const char *value,
	     size_t size)
{
	const char *key = tag_rows(t, s->key.at, s->key.size + 1, 1);

	if (!key || s->key.size > MAX_KEY || key[s->key.size])
		return -EINVAL;
	if (s->flags & TAG_CLASS)
		return tag_class(key, value, size, fd);
	return th_sys(__NR_fsetxattr, fd, key, value, size, 0);
}
