/* SPDX-License-Identifier: Apache-2.0 */
/* Closed standard streams: no file of this program may use their numbers. */
#ifndef TRACEHINT_STANDARD_H
#define TRACEHINT_STANDARD_H

#include <fcntl.h>
#include <unistd.h>

/*
 * Occupy the numbers of closed streams until exec: the command finds them closed as they were.
 * Opened in the wrong direction, so that using them fails.
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
