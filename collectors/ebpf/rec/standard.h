/* SPDX-License-Identifier: Apache-2.0 */
/* Closed standard streams: no file of ours may get their numbers. */
#ifndef TRACEHINT_STANDARD_H
#define TRACEHINT_STANDARD_H

#include <fcntl.h>
#include <unistd.h>

/*
 * Take the numbers of those that are closed, until exec: the command finds them
 * closed as they were. Open the wrong way round, so that using them fails.
 */
static inline int standard_fds_hold(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC) != fd)
			return -1;
	return 0;
}

#endif
