// SPDX-License-Identifier: Apache-2.0
/*
 * Create files and directories. Those that root creates are given to the owner of their parent
 * directory, who may replace names there at any moment: a file changes its owner through the
 * descriptor that created it, a directory while it is in a folder that only root may enter.
 */
#define _GNU_SOURCE
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAGING ".tracehint.new" /* adapters/apply/applier.py uses the same */
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static ino_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : st.st_ino;
}

static int give_away(int fd, int folder)
{
	struct stat st;

	if (geteuid() != 0)
		return 0;
	return fstat(folder, &st) < 0 ? -1 : fchown(fd, st.st_uid, st.st_gid);
}

ino_t make_empty(const char *path)
{
	const char *name;
	ino_t made = 0;
	int folder = open_parent(path, &name);

	if (folder < 0)
		return 0;
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd >= 0) {
		if (give_away(fd, folder) == 0)
			made = inode_of(fd);
		close(fd);
	}
	int error = errno;
	close(folder);
	errno = error;
	return made;
}

/* Without RENAME_NOREPLACE (NFS) a race can at most replace an empty directory. */
static int rename_new(int from, const char *old, int to, const char *name)
{
	struct stat st;

	if (renameat2(from, old, to, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (fstatat(to, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return renameat(from, old, to, name);
}

static ino_t make_staged(int folder, int staging, const char *name)
{
	char new[32];
	ino_t made = 0;

	snprintf(new, sizeof(new), "%d", (int)getpid());
	if (mkdirat(staging, new, 0777) < 0)
		return 0;
	int fd = openat(staging, new, FOLDER_FLAGS);
	if (fd >= 0 && give_away(fd, folder) == 0 && rename_new(staging, new, folder, name) == 0)
		made = inode_of(fd);
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (!made)
		unlinkat(staging, new, AT_REMOVEDIR);
	errno = error;
	return made;
}

static ino_t make_as_root(int folder, const char *name)
{
	struct stat st;
	ino_t made = 0;

	if (mkdirat(folder, STAGING, 0700) < 0 && errno != EEXIST)
		return 0;
	int staging = openat(folder, STAGING, FOLDER_FLAGS);
	if (staging < 0)
		return 0;
	if (fstat(staging, &st) == 0 && (st.st_uid != geteuid() || st.st_mode & 077))
		errno = EPERM; /* planted by another user */
	else
		made = make_staged(folder, staging, name);
	int error = errno;
	close(staging);
	unlinkat(folder, STAGING, AT_REMOVEDIR);
	errno = error;
	return made;
}

ino_t make_folder(const char *path)
{
	const char *name;
	struct stat st;
	ino_t made = 0;
	int folder = open_parent(path, &name);

	if (folder < 0)
		return 0;
	if (geteuid() == 0)
		made = make_as_root(folder, name);
	else if (mkdirat(folder, name, 0777) == 0 &&
		 fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		made = st.st_ino;
	int error = errno;
	close(folder);
	errno = error;
	return made;
}
