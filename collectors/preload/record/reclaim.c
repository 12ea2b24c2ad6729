// SPDX-License-Identifier: Apache-2.0
/*
 * Whether the kernel may have taken pages away: it unmaps them, and they look as if nobody had used
 * them. It looks twice at a page that was used, and between at all others of its list; so as long as
 * it looked at fewer pages on the whole node than a list has, each page that was used is there. In
 * a control group that has fewer file pages than that, one may be missed. The recording has the
 * last count that any process read.
 */
#include <linux/fcntl.h>
#include "tracked.h"

#define ROOM 16384 /* of /proc/vmstat: some 4 KiB */
#define NOT_THERE (~0ULL)
#define LOOKED_MOST 32768 /* pages: 128 MiB */

/* The number behind "NAME " at the beginning of a line; NOT_THERE: there is none. */
static unsigned long long counted(const char *text, const char *name)
{
	size_t len = th_len(name);

	for (; *text; text++) {
		if (th_starts(text, name)) {
			unsigned long long n = 0;

			for (text += len; *text >= '0' && *text <= '9'; text++)
				n = n * 10 + (unsigned long long)(*text - '0');
			return n;
		}
		while (*text && *text != '\n')
			text++;
		if (!*text)
			break;
	}
	return NOT_THERE;
}

static bool read_now(struct reclaims *now)
{
	long fd = th_sys(__NR_open, "/proc/vmstat", O_RDONLY | O_CLOEXEC, 0);
	char *text = th_failed(fd) ? NULL : th_map(ROOM);
	long n = text ? th_sys(__NR_read, fd, text, ROOM - 1) : -1;
	unsigned long long anon = NOT_THERE, file = NOT_THERE, list = NOT_THERE;

	if (n > 0) {
		text[n] = 0;
		list = counted(text, "nr_inactive_file ");
		anon = counted(text, "pgscan_anon ");
		file = counted(text, "pgscan_file ");
	}
	if (text)
		th_sys(__NR_munmap, text, ROOM);
	if (!th_failed(fd))
		th_sys(__NR_close, fd);
	now->looked = anon + file;
	now->most = list / 4 < LOOKED_MOST ? list / 4 : LOOKED_MOST;
	return anon != NOT_THERE && file != NOT_THERE && list != NOT_THERE;
}

/* What cannot be read is as if all had been looked at. */
void reclaims_now(struct reclaims *now)
{
	if (!read_now(now)) {
		now->looked = NOT_THERE;
		now->most = 0;
		return;
	}
	__atomic_store_n(&arena->reclaims, now->looked, __ATOMIC_RELAXED);
	__atomic_store_n(&arena->reclaims_ticks, now_ticks(), __ATOMIC_RELEASE);
}

/* The count of a moment before, by any process; not long before. */
unsigned long long reclaims_known(void)
{
	unsigned long long at = __atomic_load_n(&arena->reclaims_ticks, __ATOMIC_ACQUIRE);
	struct reclaims now;

	if (at && now_ticks() - at < arena->gap)
		return __atomic_load_n(&arena->reclaims, __ATOMIC_RELAXED);
	reclaims_now(&now);
	return now.looked;
}

bool reclaimed_since(unsigned long long then, const struct reclaims *now)
{
	return then == NOT_THERE || now->looked < then || now->looked - then > now->most;
}
