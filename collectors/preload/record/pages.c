// SPDX-License-Identifier: Apache-2.0
/*
 * What the kernel tells of the pages of a mapping (Linux 6.7): the page tables have those that were
 * used. A fault brings in pages beside its own, of large folios up to 2 MiB, unless the mapping is
 * watched by userfaultfd: then each page faults alone, and those that are written lose a mark that
 * stays where pages are taken away. Nobody waits for such a fault: the kernel takes the mark itself.
 */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "tracked.h"

/* linux/userfaultfd.h, linux/fs.h: of a kernel that may be newer than the headers */
#define UFFD_USER_MODE_ONLY 1
#define UFFD_API 0xaaULL
#define UFFD_WP_ASYNC (1ULL << 15)
#define UFFD_MODE_WP 2
#define UFFDIO_API 0xc018aa3fU
#define UFFDIO_REGISTER 0xc020aa00U
#define UFFDIO_UNREGISTER 0x8010aa01U
#define UFFDIO_WRITEPROTECT 0xc018aa06U
#define PAGEMAP_SCAN 0xc0606610U
#define IS_WATCHED 1U
#define IS_WRITTEN 2U
#define IS_PRESENT 8U
#define IS_SWAPPED 16U

#define RLIMIT_NOFILE 7
#define HIGH 1000	/* our descriptor is out of the way of those that programs count */
#define HIGH_THREADS 60 /* to grow a table that threads share takes the kernel up to 30 ms */
#define AT_ONCE 8
#define NONE (-1)
#define NEVER (-2) /* this kernel has it not */

struct region {
	unsigned long long start, end, categories;
};

struct scan {
	unsigned long long size, flags, start, end, walk_end, vec, vec_len, max_pages;
	unsigned long long inverted, mask, any, wanted;
};

static unsigned long long ino_of(long fd)
{
	struct statx facts;

	return th_failed(facts_of(fd, STATX_INO, &facts)) ? 0 : facts.stx_ino;
}

/* To a high number. */
static long raised(long fd)
{
	unsigned long long limit[2] = {0, 0};
	unsigned long long most = th_threaded() ? HIGH_THREADS : HIGH;

	th_sys(__NR_prlimit64, 0, RLIMIT_NOFILE, NULL, limit);
	if (limit[0] <= most)
		most = limit[0] - limit[0] / 8;
	long high = th_sys(__NR_fcntl, fd, F_DUPFD_CLOEXEC, most);

	th_sys(__NR_close, fd);
	return high;
}

static long watch_new(void)
{
	unsigned long long api[3] = {UFFD_API, UFFD_WP_ASYNC, 0};
	long fd = th_sys(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (th_failed(fd))
		return NEVER;
	if (th_failed(th_sys(__NR_ioctl, fd, UFFDIO_API, api))) {
		th_sys(__NR_close, fd);
		return NEVER;
	}
	fd = raised(fd);
	return th_failed(fd) ? NEVER : fd;
}

/* Our descriptor; the program may have closed it, and given its number to a file of its own. */
static long watch_here(void)
{
	long was = __atomic_load_n(&tracker->watch, __ATOMIC_ACQUIRE);

	if (was == NEVER || (was >= 0 && ino_of(was) == tracker->watch_ino))
		return was;
	long fd = watch_new();

	tracker->watch_ino = fd >= 0 ? ino_of(fd) : 0;
	if (__atomic_compare_exchange_n(&tracker->watch, &was, fd, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		return fd;
	if (fd >= 0) /* another thread was faster: this mapping goes without */
		th_sys(__NR_close, fd);
	return NONE;
}

/* Refused for mappings that nobody may ever write: shared ones of a file that is open to be read. */
bool pages_watch(unsigned long at, unsigned long len)
{
	unsigned long long range[4] = {at, len, UFFD_MODE_WP, 0};
	unsigned long long protect[3] = {at, len, 1};
	long fd = watch_here();

	if (fd < 0 || th_failed(th_sys(__NR_ioctl, fd, UFFDIO_REGISTER, range)))
		return false;
	if (!th_failed(th_sys(__NR_ioctl, fd, UFFDIO_WRITEPROTECT, protect)))
		return true;
	pages_unwatch(at, len);
	return false;
}

void pages_unwatch(unsigned long at, unsigned long len)
{
	unsigned long long range[2] = {at, len};

	if (tracker->watch >= 0)
		th_sys(__NR_ioctl, tracker->watch, UFFDIO_UNREGISTER, range);
}

/* In a child by fork, whose mappings are not watched: the descriptor is the parent's. */
void pages_inherited(void)
{
	long fd = tracker->watch;

	if (fd >= 0 && ino_of(fd) == tracker->watch_ino)
		th_sys(__NR_close, fd);
	if (fd >= 0)
		tracker->watch = NONE;
}

int pages_open(void)
{
	int fd = (int)th_sys(__NR_open, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		tracker->looks = 0;
	return fd;
}

/* Each span of pages; returns how many pages, below 0: not to be told. */
long pages_spans(const struct spans *which, const struct mapping *m, span_found found, void *with)
{
	struct region regions[AT_ONCE];
	struct scan scan = {
		.size = sizeof(scan),
		.start = m->at,
		.end = m->at + m->len,
		.vec = (unsigned long)regions,
		.vec_len = AT_ONCE,
		.max_pages = which->most,
		.mask = which->written ? IS_WRITTEN : 0,
		.any = which->watched ? IS_PRESENT | IS_WRITTEN : IS_PRESENT | IS_SWAPPED,
		.wanted = IS_WATCHED,
	};
	long pages = 0;

	while (scan.start < scan.end) {
		long n = th_sys(__NR_ioctl, which->fd, PAGEMAP_SCAN, &scan);

		if (th_failed(n)) {
			tracker->looks = 0; /* an older kernel: not again */
			return -1;
		}
		for (long i = 0; i < n; i++) {
			if (which->watched && !(regions[i].categories & IS_WATCHED))
				return -1;
			pages += (long)((regions[i].end - regions[i].start) / TH_ARENA_PAGE);
			if (found)
				found(with, regions[i].start, regions[i].end);
		}
		if (which->most || scan.walk_end <= scan.start)
			break;
		scan.start = scan.walk_end;
	}
	return pages;
}
