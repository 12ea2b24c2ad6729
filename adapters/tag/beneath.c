// SPDX-License-Identifier: Apache-2.0
/* Open and create files below the working directory, never outside of it. */
#define _GNU_SOURCE
#include "tag.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Without openat2: open each component without following links. */
static int open_by_component(const char *path, int flags, mode_t mode)
{
	char part[256];
	int folder = AT_FDCWD;

	for (;;) {
		size_t n = strcspn(path, "/");
		bool last = path[n] == 0;
		int fd;

		if (n == 0 || n >= sizeof(part) || (n == 2 && !memcmp(path, "..", 2))) {
			errno = EXDEV;
			fd = -1;
		} else {
			memcpy(part, path, n);
			part[n] = 0;
			fd = openat(folder, part,
				    last ? flags | O_NOFOLLOW
					 : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
				    last ? mode : 0);
		}
		int error = errno;
		if (folder != AT_FDCWD)
			close(folder);
		errno = error;
		if (fd < 0 || last)
			return fd;
		folder = fd;
		path += n + 1;
	}
}

int open_beneath(const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = flags,
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	int fd = syscall(__NR_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open_by_component(path, flags, mode);
	return fd;
}

int open_parent(const char *path, const char **name)
{
	char folder[4096];
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 1;

	*name = slash ? slash + 1 : path;
	if (n >= sizeof(folder)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(folder, slash ? path : ".", n);
	folder[n] = 0;
	return open_beneath(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

int make_file(const char *path)
{
	const char *name;
	int folder = open_parent(path, &name);

	if (folder < 0)
		return -1;
	int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	close(folder);
	if (fd >= 0) {
		struct timespec times[2] = {{.tv_sec = MARK}, {.tv_sec = MARK}};
		futimens(fd, times);
	}
	return fd;
}
