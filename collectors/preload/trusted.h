/* SPDX-License-Identifier: Apache-2.0 */
/* Files that this process maps, executes or writes to: no other user may have put them there. */
#ifndef TRACEHINT_TRUSTED_H
#define TRACEHINT_TRUSTED_H

#include <linux/stat.h>

#include "th_sys.h"

/* Whether a plain file is open at `fd` that belongs to this user or to root, and that neither its group
 * nor others may write to. Asked of the open file: its name may lead elsewhere a moment later. */
static inline bool th_is_trusted(long fd)
{
	const unsigned int plain = 0100000, type = 0170000, others_write = 0022, empty = 0x1000;
	struct statx facts;
	long ret = th_sys(__NR_statx, fd, "", empty, STATX_TYPE | STATX_MODE | STATX_UID, &facts);

	return !th_failed(ret) && (facts.stx_mode & type) == plain &&
	       !(facts.stx_mode & others_write) &&
	       (!facts.stx_uid || facts.stx_uid == (unsigned int)th_sys(__NR_geteuid));
}

/* Open a file by its name, and keep it only where it can be trusted. */
static inline long th_open_trusted(const char *path, int flags)
{
	long fd = th_sys(__NR_openat, TH_AT_FDCWD, path, flags, 0);

	if (th_failed(fd) || th_is_trusted(fd))
		return fd;
	th_sys(__NR_close, fd);
	return -1; /* EPERM */
}

#endif
