// SPDX-License-Identifier: Apache-2.0
/* Kinds of descriptors: a file with data, a pipe, a directory, or nothing of interest. */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "record.h"

#define MAX_DEVICES 32

static const unsigned int no_data[] = TH_NO_DATA;

/* Cache for devices without a disk: number, and whether their files have data. */
static TH_LARGE struct {
	unsigned int dev, has_data;
} devices[MAX_DEVICES];

static unsigned int device_count;

static bool look_at(long fd)
{
	long buffer[15]; /* struct statfs; the first is the type */

	if (th_failed(th_sys(__NR_fstatfs, fd, buffer)))
		return false;
	for (unsigned int i = 0; i < sizeof(no_data) / sizeof(*no_data); i++)
		if ((unsigned int)buffer[0] == no_data[i])
			return false;
	return true;
}

static bool has_data(long fd, const struct statx *facts, unsigned int dev)
{
	if (facts->stx_dev_major)
		return true;
	for (unsigned int i = 0; i < device_count; i++)
		if (devices[i].dev == dev)
			return devices[i].has_data;
	bool found = look_at(fd);
	unsigned int i = device_count;

	if (i < MAX_DEVICES) {
		devices[i].dev = dev;
		devices[i].has_data = found;
		__atomic_store_n(&device_count, i + 1, __ATOMIC_RELEASE);
	}
	return found;
}

enum slot_kind slot_kind_of(long fd, const struct statx *facts, unsigned long flags)
{
	unsigned int dev = facts->stx_dev_major << 20 | facts->stx_dev_minor;

	switch (facts->stx_mode & S_IFMT) {
	case S_IFIFO:
		return SLOT_PIPE;
	case S_IFDIR:
		return SLOT_DIR;
	case S_IFREG:
		return !(flags & O_PATH) && has_data(fd, facts, dev) ? SLOT_FILE : SLOT_OTHER;
	}
	return SLOT_OTHER;
}
