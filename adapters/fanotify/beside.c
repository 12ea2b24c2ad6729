// SPDX-License-Identifier: Apache-2.0
/*
 * A file of a FUSE store for the store's own tool. The kernel asks while it holds the directory that
 * the file is made in, and a tool that looks for anything beside the file waits for that directory,
 * so for us. In a mount name space of its own it is shown the file in another place, beside the
 * store's mark, by which tools of MooseFS find their master.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent.h"

#define MARK ".masterinfo"
#define PLACE "/sys" /* a directory everywhere, which the tools do not need */
#define STORES 16
#define MAX_NAME 4096
#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 4
#endif

/* The mark is kept open, so that it can be shown without looking it up. */
static struct {
	dev_t dev;
	int mark;
} stores[STORES];
static unsigned int count;

void learn_store(const char *place)
{
	char path[MAX_NAME], above[MAX_NAME + 4];
	struct stat of_place, of_above;

	if (count == STORES || !realpath(place, path) || stat(path, &of_place))
		return;
	for (;;) { /* up to where the store is mounted */
		snprintf(above, sizeof(above), "%s/..", path);
		if (stat(above, &of_above) || of_above.st_dev != of_place.st_dev ||
		    !strrchr(path, '/') || strrchr(path, '/') == path)
			break;
		*strrchr(path, '/') = 0;
	}
	int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int mark = root < 0 ? -1 : openat(root, MARK, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (root >= 0)
		close(root);
	if (mark < 0)
		return;
	stores[count].dev = of_place.st_dev;
	stores[count++].mark = mark;
}

static int copy_of(int fd)
{
	return (int)syscall(SYS_open_tree, fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | O_CLOEXEC);
}

static bool show(int copy, const char *path)
{
	int point = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (point < 0)
		return false;
	close(point);
	return !syscall(SYS_move_mount, copy, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
}

const char *shown_beside(int fd)
{
	struct stat facts;
	int mark = -1;

	if (fstat(fd, &facts))
		return NULL;
	for (unsigned int i = 0; i < count; i++)
		if (stores[i].dev == facts.st_dev)
			mark = stores[i].mark;
	if (mark < 0)
		return NULL;
	int file = copy_of(fd), found = copy_of(mark);

	if (file < 0 || found < 0 || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", PLACE, "tmpfs", 0, NULL) || !show(file, PLACE "/file") ||
	    !show(found, PLACE "/" MARK))
		return NULL;
	return PLACE "/file";
}
