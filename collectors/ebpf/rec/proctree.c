// SPDX-License-Identifier: Apache-2.0
/* The process tree below a process, from /proc. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "rec.h"

#define ROUNDS 16 /* passes over /proc, for children forked meanwhile */

/* Read the parent and the user of a process; -ESRCH if there is none or it is a zombie. */
int proctree_row(int pid, struct proc_row *row)
{
	unsigned int real = 0, effective = 0;
	char name[64], line[256], state = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	f = fopen(name, "re");
	if (!f)
		return -ESRCH;
	*row = (struct proc_row){.pid = pid};
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "State: %c", &state) == 1 ||
		    sscanf(line, "PPid: %d", &row->ppid) == 1)
			continue;
		if (sscanf(line, "Uid: %u %u", &real, &effective) == 2)
			break;
	}
	fclose(f);
	if (state == 'Z' || state == 'X')
		return -ESRCH;
	row->ours = !geteuid() || (real == getuid() && effective == getuid());
	return 0;
}

static struct proc_row *read_rows(size_t *count)
{
	struct proc_row *rows = NULL;
	size_t n = 0, room = 0;
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	*count = 0;
	while (dir && (entry = readdir(dir))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0)
			continue;
		if (n == room) {
			struct proc_row *more =
				realloc(rows, (room = room * 2 + 256) * sizeof(*rows));

			if (!more)
				break;
			rows = more;
		}
		if (!proctree_row(pid, &rows[n]))
			n++;
	}
	if (dir)
		closedir(dir);
	*count = n;
	return rows;
}

#define PIDS (1 << 22)

static bool has(const unsigned char *set, int pid)
{
	return pid > 0 && pid < PIDS && (set[pid / 8] & (1 << pid % 8));
}

static void add(unsigned char *set, int pid)
{
	set[pid / 8] |= (unsigned char)(1 << pid % 8);
}

/* Mark the process and its descendants, without the recorder and its parent. */
static void mark_tree(struct proc_row *rows, size_t n, int root, unsigned char *tree)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++) {
			int pid = rows[i].pid;

			if (has(tree, pid) || pid >= PIDS || pid == getpid() || pid == getppid())
				continue;
			if (pid == root || has(tree, rows[i].ppid)) {
				add(tree, pid);
				more = true;
			}
		}
	}
}

/* Request the processes of the tree; return the number of new ones, or -errno. */
static int want_tree(int root, unsigned char *tree, unsigned char *known)
{
	size_t n;
	struct proc_row *rows = read_rows(&n), now;
	int fresh = 0, err = 0;

	if (!rows)
		return -ENOMEM;
	mark_tree(rows, n, root, tree);
	for (size_t i = 0; i < n && !err; i++) {
		int pid = rows[i].pid;

		if (!has(tree, pid) || !rows[i].ours || has(known, pid))
			continue;
		add(known, pid);
		fresh++;
		err = tracer_want_pid((unsigned int)pid);
		if (proctree_row(pid, &now))
			tracer_unwant_pid((unsigned int)pid); /* its pid may be reused */
	}
	free(rows);
	return err ? err : fresh;
}

/* Request following of the process and its descendants; -ESRCH if there are none. */
int proctree_want(int root)
{
	unsigned char *known;
	int n = 1;

	known = calloc(2, PIDS / 8); /* known pids, and pids of the tree */
	if (!known)
		return -ENOMEM;
	for (int round = 0; round < ROUNDS && n > 0; round++) {
		n = want_tree(root, known + PIDS / 8, known);
		if (!round && !n)
			n = -ESRCH;
	}
	free(known);
	return n < 0 ? n : 0;
}
