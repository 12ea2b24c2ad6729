// SPDX-License-Identifier: Apache-2.0
/*
 * tracehint-tag: set the hints of one task's files, before and after the task runs.
 *
 *   tracehint-tag set TABLE TASK               before the task
 *   tracehint-tag clean TABLE TASK             after it: tag its outputs, remove unused files
 *   tracehint-tag run TABLE TASK COMMAND...    both, around a command
 *   tracehint-tag script set|dry|undo [quiet]  execute a script of emit: script.c
 *
 * TABLE is written by `tracehint emit --workflow-engine` (adapters/engines/tag_table.py): a line
 * "tracehint-tags 1 <number of tasks>", an index of "<offset> <length>" lines of fixed width, and
 * NUL-terminated fields: kind, path, attribute, value in hexadecimal (a plain name for mfs:sclass
 * and for a pool of Ceph with @host). Kinds: D directory, F file, A file to tag after the task, C
 * file to create, K file to create and keep (several tasks write it). Directories are not created:
 * a task that runs `mkdir out` would fail. Links and ".." cannot lead out of the working directory.
 *
 * A hint is advice: failures print one line on standard error and never stop the task.
 * A created file gets the time stamp MARK, so that `clean` can detect whether it was touched, and
 * so that it is older than any input.
 *
 * Exit status of set: 0 success, 3 success and `clean` must run after the task.
 */
#define _GNU_SOURCE
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_MADE 3

static bool complained;

void complain(const char *what, int error)
{
	if (!complained)
		fprintf(stderr, "tracehint-tag: %s: %s\n", what, strerror(error));
	complained = true;
}

/* Whether the file is created before the task, which may replace it (sed -i, mv). */
static bool is_made(const struct record *r)
{
	return r->kind[0] == 'C' || r->kind[0] == 'K';
}

static int open_target(const struct record *r, bool after)
{
	int fd = open_beneath(r->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);

	if (fd < 0 && errno == ENOENT && is_made(r) && !after)
		fd = make_file(r->path);
	return fd;
}

/* Set the attributes due before the task, or after it: kind A, and again those of created files,
 * which costs a read if they are still set. EXIT_MADE: clean() has work. */
static int tag(struct table t, bool after)
{
	struct record r;
	const char *opened = NULL;
	struct batch batch = {0};
	struct stat st;
	bool made = false;
	int fd = -1;

	while (table_next(&t, &r)) {
		if (after ? r.kind[0] != 'A' && !is_made(&r) : r.kind[0] == 'A') {
			made |= !after;
			continue;
		}
		if (!opened || strcmp(opened, r.path)) {
			if (fd >= 0)
				close(fd);
			fd = open_target(&r, after);
			opened = r.path;
			if (fd < 0 && errno != ENOENT)
				complain("cannot open a file to tag it", errno);
			if (fd >= 0 &&
			    (fstat(fd, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))) {
				close(fd);
				fd = -1;
			}
			made |= fd >= 0 && r.kind[0] == 'C' && st.st_size == 0;
		}
		if (fd >= 0 && !strcmp(r.name, MFS_CLASS))
			class_add(&batch, fd, r.value);
		else if (fd >= 0)
			set_attribute(fd, &r);
	}
	class_set(&batch);
	if (fd >= 0)
		close(fd);
	return made ? EXIT_MADE : 0;
}

/* Tag the task's outputs; remove created files that are still untouched: the task did not write
 * them. */
static void clean(struct table t)
{
	struct record r;
	struct stat st;
	const char *name;

	tag(t, true);
	while (table_next(&t, &r)) {
		if (r.kind[0] != 'C')
			continue;
		int folder = open_parent(r.path, &name);

		if (folder < 0)
			continue;
		if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
		    st.st_size == 0 && st.st_mtim.tv_sec == MARK && st.st_mtim.tv_nsec == 0)
			unlinkat(folder, name, 0);
		close(folder);
	}
}

static int usage(void)
{
	fprintf(stderr, "usage: tracehint-tag set|clean TABLE TASK\n"
			"       tracehint-tag run TABLE TASK COMMAND...\n"
			"       tracehint-tag script set|dry|undo [quiet] <TABLE\n");
	return 2;
}

static int main_script(int argc, char **argv)
{
	if (argc > 4 || argc < 3 || (argc == 4 && strcmp(argv[3], "quiet")) ||
	    (strcmp(argv[2], "set") && strcmp(argv[2], "dry") && strcmp(argv[2], "undo")))
		return usage();
	return script(argv[2], argc == 4);
}

int main(int argc, char **argv)
{
	struct table t = {0};
	int status = 0;
	int fd = 0;

	/* no file may get the number of a closed standard stream; exec closes these again */
	while (fd >= 0 && fd < 3)
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	bool runs = argc > 4 && !strcmp(argv[1], "run");

	if (argc > 1 && !strcmp(argv[1], "script"))
		return main_script(argc, argv);
	if (argc < 4 || (!runs && argc != 4))
		return usage();
	bool found = table_open(&t, argv[2], argv[3]) == 0;
	if (!found)
		complain("cannot use the table", errno);
	if (!strcmp(argv[1], "clean")) {
		if (found)
			clean(t);
		return 0;
	}
	if (found)
		status = tag(t, false);
	if (!runs)
		return status;
	if (status != EXIT_MADE) /* nothing to clean up */
		return become(argv + 4);
	status = run(argv + 4);
	clean(t);
	return end_like(status);
}
