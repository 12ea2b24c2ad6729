// SPDX-License-Identifier: Apache-2.0
/* What the kernel says of an open file. */
#include <linux/stat.h>
#include "record.h"

#define AT_EMPTY_PATH 0x1000
#define EFAULT 14

long facts_of(long fd, unsigned int mask, struct statx *facts)
{
	static bool named; /* before Linux 6.11 a name must be given; reading an empty one costs */
	long ret = named ? -EFAULT : th_sys(__NR_statx, fd, NULL, AT_EMPTY_PATH, mask, facts);

	if (ret != -EFAULT)
		return ret;
	named = true;
	return th_sys(__NR_statx, fd, "", AT_EMPTY_PATH, mask, facts);
}

bool size_of(long fd, unsigned long long *size)
{
	struct statx facts;

	if (th_failed(facts_of(fd, STATX_SIZE, &facts)))
		return false;
	*size = facts.stx_size;
	return true;
}
