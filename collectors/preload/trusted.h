/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of files to map, execute or write: no other user may have put them there. */
#ifndef TRACEHINT_TRUSTED_H
#define TRACEHINT_TRUSTED_H

#include <linux/stat.h>

#include "th_sys.h"

/* Whether a regular file is open at `fd` that this user or root owns and that neither its group nor
 * others may write. Checks the open file, because its name may soon refer to another one. */
static inline bool th_is_trusted(long fd)
{
	const unsigned int plain = 0100000, type = 0170000, others_write = 0022, empty = 0x1000;
	struct statx facts;
	long ret = th_sys(__NR_statx, fd, "", empty, STATX_TYPE | STATX_MODE | STATX_UID, &facts);

	return !th_failed(ret) && (facts.stx_mode & type) == plain &&
	       !(facts.stx_mode & others_write) &&
	       (!facts.stx_uid || facts.stx_uid == (unsigned int)th_sys(__NR_geteuid));
}

/* Open a file by its name and return its descriptor, or an error if it cannot be trusted. */
static inline long th_open_trusted(const char *path, int flags)
{
	long fd = th_sys(__NR_openat, TH_AT_FDCWD, path, flags, 0);

	if (th_failed(fd) || th_is_trusted(fd))
		return fd;
	th_sys(__NR_close, fd);
	return -1; /* EPERM */
}

/* Open a file that the library writes to, under a high number, and only if it is the file of that
 * name. A low number is not safe: another thread that closes a descriptor twice closes it, and then
 * it may be that of a user's file. */
static inline long th_open_own(const char *path, int flags)
{
	const unsigned int empty = 0x1000, nofollow = 0400000, link = 0x100;
	const int dup_cloexec = 1030, last = 60; /* the kernel's initial table has 64 entries */
	struct statx opened, named;
	long fd = th_open_trusted(path, flags);
	long high = th_failed(fd) ? fd : th_sys(__NR_fcntl, fd, dup_cloexec, last);

	if (!th_failed(high)) { /* else the program may have fewer descriptors */
		th_sys(__NR_close, fd);
		fd = high;
	}
	if (th_failed(fd))
		return fd;
	if (!th_failed(th_sys(__NR_statx, fd, "", empty, STATX_INO, &opened)) &&
	    !th_failed(th_sys(__NR_statx, TH_AT_FDCWD, path,
			      (unsigned int)flags & nofollow ? link : 0, STATX_INO, &named)) &&
	    opened.stx_ino == named.stx_ino)
		return fd;
	th_sys(__NR_close, fd);
	return -1;
}

#endif
