// SPDX-License-Identifier: Apache-2.0
/*
 * Processes in another mount namespace or below another root directory than the recorder. Their
 * absolute names are relative to a text, which has a zero byte and their mount table. From both,
 * schemas/spool/mount_names.py makes names that are valid for the recorder.
 */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "process.h"

#define MOST (256U << 10) /* MAX_TABLE there: a longer table is ignored */

/* A mount id belongs to one namespace. Before Linux 5.8 statx does not report it. */
static bool is_apart(void)
{
	struct statx facts;
	long ret = th_sys(__NR_statx, TH_AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, &facts);

	if (th_failed(ret) || facts.stx_ino != arena->root_ino)
		return true;
	if (facts.stx_mask & STATX_MNT_ID)
		return facts.stx_mnt_id != arena->root_mount;
	unsigned int space = space_of("/proc/self/ns/mnt");

	return space && space != arena->mounts;
}

/* Read the mount table of this process; returns its size, 0 if there is no /proc. */
static unsigned int read_table(char *to, unsigned int room)
{
	long fd = th_sys(__NR_openat, TH_AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC, 0);
	unsigned int used = 0;

	if (th_failed(fd))
		return 0;
	while (used < room) {
		long n = th_sys(__NR_read, fd, to + used, room - used);

		if (th_failed(n) || !n)
			break;
		used += (unsigned int)n;
	}
	th_sys(__NR_close, fd);
	return used;
}

unsigned int mounts_text(struct rec *rec)
{
	bool apart = arena->mounts && is_apart();
	char *text = apart ? th_map(MOST) : NULL;

	if (apart && !text)
		lose(rec, TH_LOST_LIFECYCLE, 1);
	if (!text)
		return 0;
	image.remounts = arena->remounts;
	unsigned int id = shared_text(rec, text, 1 + read_table(text + 1, MOST - 1));

	th_sys(__NR_munmap, text, MOST);
	return id;
}
