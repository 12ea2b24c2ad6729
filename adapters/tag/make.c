// SPDX-License-Identifier: Apache-2.0
/*
 * Making files and directories. What root makes in somebody's directory is given to the owner of
 * that directory, who may exchange names there at any moment: a file is given away by the
 * descriptor that made it, a directory while it lies in a folder that only root may enter.
 */
#define _GNU_SOURCE
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAGING ".tracehint.new" /* adapters/stores/make.py uses the same */
#define FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int give_away(int fd, int folder)
{
	struct stat st;

	if (geteuid() != 0)
		return 0;
	return fstat(folder, &st) < 0 ? -1 : fchown(fd, st.st_uid, st.st_gid);
}

int make_empty(const char *path)
{
	const char *name;
	int result = -1, folder = open_parent(path, &name);

	if (folder < 0)
		return -1;
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd >= 0) {
		result = give_away(fd, folder);
		close(fd);
	}
	close(folder);
	return result;
}

/* Without RENAME_NOREPLACE (NFS) a directory replaces an empty directory at most. */
static int move(int from, const char *old, int to, const char *name)
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

static int make_staged(int folder, int staging, const char *name)
{
	char new[32];
	int result = -1;

	snprintf(new, sizeof(new), "%d", (int)getpid());
	if (mkdirat(staging, new, 0777) < 0)
		return -1;
	int fd = openat(staging, new, FLAGS);
	if (fd >= 0 && give_away(fd, folder) == 0)
		result = move(staging, new, folder, name);
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (result < 0)
		unlinkat(staging, new, AT_REMOVEDIR);
	errno = error;
	return result;
}

static int make_as_root(int folder, const char *name)
{
	struct stat st;
	int result = -1;

	if (mkdirat(folder, STAGING, 0700) < 0 && errno != EEXIST)
		return -1;
	int staging = openat(folder, STAGING, FLAGS);
	if (staging < 0)
		return -1;
	if (fstat(staging, &st) == 0 && (st.st_uid != geteuid() || st.st_mode & 077))
		errno = EPERM; /* planted */
	else
		result = make_staged(folder, staging, name);
	int error = errno;
	close(staging);
	unlinkat(folder, STAGING, AT_REMOVEDIR);
	errno = error;
	return result;
}

int make_folder(const char *path)
{
	const char *name;
	int folder = open_parent(path, &name);

	if (folder < 0)
		return -1;
	int result = geteuid() == 0 ? make_as_root(folder, name) : mkdirat(folder, name, 0777);
	int error = errno;
	close(folder);
	errno = error;
	return result;
}
