// SPDX-License-Identifier: Apache-2.0
/* Extended attributes and layouts by fsetxattr; a storage class of MooseFS in its own words. */
#include "store.h"

#define EINVAL 22
#define MAX_KEY 255

/* The key of a setting ends with a NUL that is not counted; of a class it is the tool's path. */
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
