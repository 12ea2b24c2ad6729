// SPDX-License-Identifier: Apache-2.0
/*
 * A new file's name from what the program gave. The kernel tells it for any descriptor, but a look
 * into /proc/self/fd costs as much as three other calls: it is left where the name given is true as
 * it stands, below the working directory or a root, without a link on its way.
 */
#include "hinter.h"

#define EINVAL 22
#define MOST_LOOKS 2 /* at parts of a name; a third one costs as much as /proc does */

static bool is_link(const char *path)
{
	char first;

	return th_sys(__NR_readlink, path, &first, 1) != -EINVAL;
}

/* Whether the name holds nothing but plain parts, of which none is a link; it is as given after. */
static bool is_true(const char *whole, char *name)
{
	unsigned int looks = 0;

	for (char *part = name;; part++) {
		char *end = part;

		while (*end && *end != '/')
			end++;
		if (end == part || (*part == '.' && (end == part + 1 || part[1] == '.')) ||
		    looks++ == MOST_LOOKS)
			return false;
		char there = *end;

		*end = '\0';
		bool link = is_link(whole);

		*end = there;
		if (link)
			return false;
		if (!there)
			return true;
		part = end;
	}
}

uint32_t tag_name_given(const struct tag_table *t, int dirfd, const char *path, char *out)
{
	size_t base = 0, size = th_len(path);
	uint16_t root;

	for (; path[0] == '.' && path[1] == '/'; path += 2)
		size -= 2;
	if (*path != '/') {
		long n = dirfd == TH_AT_FDCWD ? th_sys(__NR_getcwd, out, TAG_MAX_NAME) : -1;

		if (th_failed(n) || *out != '/')
			return 0;
		base = (size_t)n; /* with its NUL, where the slash goes */
		out[base - 1] = '/';
	}
	if (base + size >= TAG_MAX_NAME)
		return 0;
	th_copy(out + base, path, size + 1);
	uint32_t length = (uint32_t)(base + size);

	if (base)
		return is_true(out + base, out + base) ? length : 0;
	uint32_t below = length;
	const char *name = tag_below(t, out, &below, &root);

	return name && is_true(out, out + (name - out)) ? length : 0;
}
