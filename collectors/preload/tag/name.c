/*
 * A new file's name from the path of the call. The kernel reports the name of any descriptor, but a
 * readlink in /proc/self/fd costs as much as three other calls. It is omitted if the given path is
 * the true one already: below the working directory or a root, without symbolic links.
 */
#include "hinter.h"

#define EINVAL 22
#define MOST_LOOKS 2 /* readlink calls per name; a third one costs as much as /proc */

static bool is_link(const char *path)
{
	char first;

	return th_sys(__NR_readlink, path, &first, 1) != -EINVAL;
}

/* Whether all parts of the name are plain and none is a link; the name is restored. */
static bool is_plain_name(const char *whole, char *name)
{
	unsigned int looks = 0;

	for (char *part = name;; part++) {
		char *end = part;

		while (*end && *end != '/')
			end++;
		if (end == part || (*part == '.' && (end == part + 1 || part[1] == '.')) ||
		    looks++ == MOST_LOOKS)
			return false;
		char end_char = *end;

		*end = '\0';
		bool link = is_link(whole);

		*end = end_char;
		if (link)
			return false;
		if (!end_char)
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
		base = (size_t)n; /* with its NUL, which the slash replaces */
		out[base - 1] = '/';
	}
	if (base + size >= TAG_MAX_NAME)
		return 0;
	th_copy(out + base, path, size + 1);
	uint32_t length = (uint32_t)(base + size);

	if (base)
		return is_plain_name(out + base, out + base) ? length : 0;
	uint32_t below = length;
	const char *name = tag_below(t, out, &below, &root);

	return name && is_plain_name(out, out + (name - out)) ? length : 0;
}
