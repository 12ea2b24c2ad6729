// SPDX-License-Identifier: Apache-2.0
/*
 * Patches objects with system calls of their own that are loaded while the program runs: a second C
 * library (dlmopen), libaio. This happens when the loader maps their code, before it is executed.
 */
#include <linux/stat.h>
#include "bare.h"
#include "sites.h"

#define PROT_EXEC 4
#define MAP_ANONYMOUS 0x20
#define MOST 32 /* objects per process: trampolines are never unmapped */
#define MAX_NAME 512
#define AT_EMPTY_PATH 0x1000

void th_mapped(const struct th_call *call)
{
	static unsigned int count;
	char link[TH_FD_NAME], name[MAX_NAME];

	if (!(call->arg[2] & PROT_EXEC) || (call->arg[3] & MAP_ANONYMOUS) || (int)call->arg[4] < 0)
		return;
	long n = th_sys(__NR_readlink, th_fd_name(link, (int)call->arg[4]), name, MAX_NAME - 1);

	if (n <= 0)
		return;
	name[n] = '\0';
	if (!is_patched(name) || __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) >= MOST)
		return;
	struct statx facts;
	unsigned long from = (unsigned long)call->arg[5], length = (unsigned long)call->arg[1];

	/* if a segment without code follows, the first mapping is longer than the file */
	if (th_failed(th_sys(__NR_statx, call->arg[4], "", AT_EMPTY_PATH, STATX_SIZE, &facts)) ||
	    from >= facts.stx_size)
		return;
	if (length > facts.stx_size - from)
		length = facts.stx_size - from;
	struct text text = {
		.start = (unsigned char *)call->ret,
		.end = (unsigned char *)call->ret + length,
		.protection = (int)call->arg[2],
	};

	th_patch_later(&text);
}
