// SPDX-License-Identifier: Apache-2.0
/* Following processes that run already: which ones, and until when. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include "rec.h"

#define CGROUP2 0x63677270
#define ROUNDS 16 /* of looking for children that were born while looking */

struct row {
	int pid, ppid;
	bool ours; /* of the caller's user, or the caller is root */
};

static int cgroup_fd = -1;

/* Who runs a process; -ESRCH when there is none, or only its exit status is left. */
static int read_row(int pid, struct row *row)
{
	unsigned int real = 0, effective = 0;
	char name[64], line[256], state = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	f = fopen(name, "re");
	if (!f)
		return -ESRCH;
	*row = (struct row){.pid = pid};
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

static struct row *read_rows(size_t *count)
{
	struct row *rows = NULL;
	size_t n = 0, room = 0;
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	*count = 0;
	while (dir && (entry = readdir(dir))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0)
			continue;
		if (n == room) {
			struct row *more = realloc(rows, (room = room * 2 + 256) * sizeof(*rows));

			if (!more)
				break;
			rows = more;
		}
		if (!read_row(pid, &rows[n]))
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

/* The process and its descendants, but not the recorder and its own. */
static void mark(struct row *rows, size_t n, int root, unsigned char *tree)
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

/* One look at the tree; the number of processes that were not known yet, or -errno. */
static int want_tree(int root, unsigned char *tree, unsigned char *known)
{
	size_t n;
	struct row *rows = read_rows(&n), now;
	int fresh = 0, err = 0;

	if (!rows)
		return -ENOMEM;
	mark(rows, n, root, tree);
	for (size_t i = 0; i < n && !err; i++) {
		int pid = rows[i].pid;

		if (!has(tree, pid) || !rows[i].ours || has(known, pid))
			continue;
		add(known, pid);
		fresh++;
		err = tracer_want_pid((unsigned int)pid);
		if (read_row(pid, &now))
			tracer_unwant_pid((unsigned int)pid); /* its number may be used again */
	}
	free(rows);
	return err ? err : fresh;
}

/* Refuse what cannot be followed before anything is loaded. */
int follow_check(const struct options *o)
{
	struct statfs fs;
	struct row row;

	if (o->listen >= 0)
		return node_check(o);
	if (o->pid) {
		int err = read_row(o->pid, &row);

		return err ? err : row.ours ? 0 : -EPERM;
	}
	if (!o->cgroup)
		return 0;
	cgroup_fd = open(o->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup_fd < 0)
		return -errno;
	return fstatfs(cgroup_fd, &fs) || fs.f_type != CGROUP2 ? -ENOTSUP : 0;
}

/* The tracer is attached and armed: say who we are and what is wanted. */
int follow_begin(const struct options *o, unsigned long long cookie)
{
	unsigned char *known;
	int n = 1;

	if (o->cgroup) {
		int err = tracer_want_cgroup(cgroup_fd);

		if (err)
			return err;
	}
	syscall(SYS_prctl, cookie, 0, 0, 0, 0); /* no such option: it only says who we are */
	if (!o->pid)
		return 0;
	known = calloc(2, PIDS / 8); /* known, and the tree as it was seen */
	if (!known)
		return -ENOMEM;
	for (int round = 0; round < ROUNDS && n > 0; round++) {
		n = want_tree(o->pid, known + PIDS / 8, known);
		if (!round && !n)
			n = -ESRCH;
	}
	free(known);
	return n < 0 ? n : 0;
}

/* Whether any process is in the cgroup or below; true when that cannot be told. */
static bool populated(void)
{
	char text[256];
	int fd = openat(cgroup_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	else
		return faccessat(cgroup_fd, "cgroup.procs", F_OK, 0) == 0; /* the root has none */
	if (n < 0)
		return errno != ENODEV; /* removed */
	text[n] = 0;
	return !strstr(text, "populated 0");
}

/* Without those that ended between the tracer's last look at them and our asking for them. */
bool follow_any_wanted(void)
{
	unsigned int pid = tracer_next_wanted(0);
	bool any = false;

	while (pid) {
		unsigned int next = tracer_next_wanted(pid);
		struct row row;

		if (read_row((int)pid, &row))
			tracer_unwant_pid(pid);
		else
			any = true;
		pid = next;
	}
	return any;
}

static bool all_ended(const struct options *o)
{
	if (tracer_live())
		return false;
	if (o->pid)
		return !follow_any_wanted();
	/* an empty cgroup may be waiting for its first process */
	return !populated() &&
	       (tracer_epochs() > 1 || faccessat(cgroup_fd, "cgroup.procs", F_OK, 0));
}

bool follow_asked_to_stop(int signals)
{
	struct signalfd_siginfo info;
	bool stop = false;

	while (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		stop |= info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM ||
			info.ssi_signo == SIGHUP || info.ssi_signo == SIGQUIT;
	return stop;
}

/* Read records until the time is over, all have ended, or a signal says stop. */
void follow_until_end(const struct options *o, int signals)
{
	struct pollfd fds[] = {
		{.fd = tracer_epoll_fd(), .events = POLLIN},
		{.fd = signals, .events = POLLIN},
	};
	unsigned long long now = clock_ns(CLOCK_MONOTONIC), next_tick = now + 1000000000ULL;
	unsigned long long end = o->duration_ms ? now + o->duration_ms * 1000000ULL : ~0ULL;

	for (;;) {
		unsigned long long left = now < end ? (end - now) / 1000000 + 1 : 0;

		poll(fds, 2, left < 100 ? (int)left : 100);
		tracer_consume();
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= next_tick) {
			collect_tick();
			next_tick = now + 1000000000ULL;
		}
		if (now >= end || follow_asked_to_stop(signals) || all_ended(o))
			return;
	}
}
