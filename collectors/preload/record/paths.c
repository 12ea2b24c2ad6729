// SPDX-License-Identifier: Apache-2.0
/* Texts of paths: as passed to a call, or as the kernel reports them. */
#include "process.h"

#define MAX_PATH 4096

/* Return the text of the kernel's path of an open file; 0: not known. */
unsigned int path_asked(struct rec *rec, long fd, bool deleted)
{
	static const char gone[] = " (deleted)";
	char name[TH_FD_NAME];
	unsigned int size = MAX_PATH;
	char *text = th_map(size);
	unsigned int id = 0;

	if (!text)
		return 0;
	long n = th_sys(__NR_readlink, th_fd_name(name, (int)fd), text, size);

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

/* Whether a path has its meaning in this process only; the kernel can resolve it. */
bool path_is_own(const char *path)
{
	return th_starts(path, "/proc/") || th_starts(path, "/dev/fd/") ||
	       th_starts(path, "/dev/std");
}

/* Return the text of a path that was passed to a call. */
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
