// SPDX-License-Identifier: Apache-2.0
/* One open: an empty regular file of a name with a hint, which a process of the run may write. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>
#include "agent.h"

#define JUST_MADE_NS 50000000LL

static bool is_empty_file(int fd, struct statx *facts)
{
	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		      STATX_TYPE | STATX_SIZE | STATX_CTIME | STATX_NLINK, facts) &&
	       S_ISREG(facts->stx_mode) && !facts->stx_size && facts->stx_nlink;
}

/* As tag_name_of, with fewer directories to go through. */
static uint32_t name_of(const struct opened *o, int fd, char *out)
{
	char digits[12];

	snprintf(digits, sizeof(digits), "%d", fd);
	ssize_t length = readlinkat(o->descriptors, digits, out, TAG_MAX_NAME);

	return length < 0 || length >= TAG_MAX_NAME || out[0] != '/' ? 0 : (uint32_t)length;
}

/* Nobody had time to open it for reading. The coarse clock is behind the times of files. */
static bool just_made(const struct statx *facts)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	long long age = (t.tv_sec - facts->stx_ctime.tv_sec) * 1000000000LL + t.tv_nsec -
			(long long)facts->stx_ctime.tv_nsec;

	return age >= 0 && age < JUST_MADE_NS;
}

/* Tools open files themselves, and a file system that is a process may. */
static bool may_take_long(const struct opened *o, int fd, const struct statx *facts)
{
	static uint32_t major = ~0U, minor;
	static bool slow;
	struct statfs what;

	if (facts->stx_dev_major != major || facts->stx_dev_minor != minor) {
		slow = !fstatfs(fd, &what) && what.f_type == FUSE_SUPER_MAGIC;
		major = facts->stx_dev_major;
		minor = facts->stx_dev_minor;
	}
	return o->tools || slow;
}

enum opened_how file_opened(struct opened *o, int fd, pid_t thread)
{
	struct statx facts = {0};

	if (!is_empty_file(fd, &facts))
		return S_ISREG(facts.stx_mode) && facts.stx_size ? OPENED_FULL : OPENED;
	enum tag_count found =
		hinter_find(&o->hinter, &o->slot, name_of(o, fd, o->slot.path), (uint32_t)thread);

	if (o->slot.match.type == TAG_UNASKED &&
	    (found == TAG_C_OUTSIDE || found == TAG_C_NO_RULE || found == TAG_C_NO_HINT))
		return OPENED;
	pid_t process = family_of(thread, o->run);

	if (!process || (!just_made(&facts) && !wants_to_write(thread)))
		return OPENED;
	tag_count(&o->hinter.journal, TAG_C_CREATED);
	if (found != TAG_C_SET) {
		tag_count(&o->hinter.journal, found);
		hinter_withhold(&o->hinter, &o->slot, (uint32_t)process);
		return OPENED;
	}
	if (may_take_long(o, fd, &facts)) {
		if (set_later(&o->slot, fd, process))
			return OPENED_LATER;
		tag_count(&o->hinter.journal, TAG_C_DROPPED);
		return OPENED;
	}
	hinter_set(&o->hinter, &o->slot, fd, (uint32_t)process);
	return OPENED;
}
