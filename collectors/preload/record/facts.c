// SPDX-License-Identifier: Apache-2.0
/* Attributes of an open file. */
#include <linux/stat.h>
#include "record.h"

#define AT_EMPTY_PATH 0x1000

/* The name is empty and not NULL, because Valgrind reports NULL as an error of the program. */
long facts_of(long fd, unsigned int mask, struct statx *facts)
{
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
