// SPDX-License-Identifier: Apache-2.0
/* Drops all capabilities after the programs are attached; root keeps those for files and kill. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "rec.h"

int privileges_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2], keep[2];
	unsigned int wanted = 0;

	if (!geteuid())
		wanted = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH | 1U << CAP_KILL;
	if (syscall(SYS_capget, &header, data))
		return -errno;
	memset(keep, 0, sizeof(keep));
	keep[0].permitted = keep[0].effective = data[0].permitted & wanted;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_capset, &header, keep) ? -errno : 0;
}
