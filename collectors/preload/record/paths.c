// SPDX-License-Identifier: Apache-2.0
/* Texts of paths: as a call gave them, or as the kernel has them. */
#include "process.h"

#define MAX_PATH 4096

/* "/proc/self/fd/N" */
static void own_name(char *to, long fd)
{
	char digits[20];
	unsigned int n = 0;

	th_copy(to, "/proc/self/fd/", 14);
	to += 14;
	do
		digits[n++] = (char)('0' + fd % 10);
	while (fd /= 10);
	while (n)
		*to++ = digits[--n];
	*to = '\0';
}

/* The path of an open file as the kernel has it; 0: not known. */
unsigned int path_asked(struct rec *rec, long fd, bool deleted)
{
	static const char gone[] = " (deleted)";
	char name[48];
	unsigned int size = MAX_PATH;
	char *text = th_map(size);
	unsigned int id = 0;

	if (!text)
		return 0;
	own_name(name, fd);
	long n = th_sys(__NR_readlink, name, text, size);

	if (n > (long)sizeof(gone) && deleted &&
	    th_same(text + n - (sizeof(gone) - 1), gone, sizeof(gone) - 1))
		n -= sizeof(gone) - 1;
	if (n > 0 && text[0] == '/' && !th_starts(text, "/memfd:"))
		id = text_put(rec, image.mounts, text, (unsigned int)n);
	th_sys(__NR_munmap, text, size);
	return id;
}

unsigned int path_of_fd(struct rec *rec, long fd)
{
	struct slot *slot = slot_use(rec, fd);

	return slot ? slot->path : 0;
}

/* Whether a path says something about this process only: the kernel knows what it meant. */
bool path_is_own(const char *path)
{
	return th_starts(path, "/proc/") || th_starts(path, "/dev/fd/") ||
	       th_starts(path, "/dev/std");
}

/* The text of a path as a call gave it. */
unsigned int path_at(struct rec *rec, long dirfd, const char *path)
{
	size_t len = th_len(path);

	if (!len && (int)dirfd != TH_AT_FDCWD)
		return path_of_fd(rec, (int)dirfd);
	if (len >= MAX_PATH)
		len = MAX_PATH;
	if (*path == '/')
		return text_put(rec, rec->root, path, (unsigned int)len);
	unsigned int dir = (int)dirfd == TH_AT_FDCWD ? rec->cwd : path_of_fd(rec, (int)dirfd);

	return text_put(rec, dir, path, (unsigned int)len);
}
