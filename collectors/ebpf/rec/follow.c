// SPDX-License-Identifier: Apache-2.0
/* Following running processes: which ones, and until when. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include "rec.h"

#define CGROUP2 0x63677270

static int cgroup_fd = -1;

/* Reject what cannot be followed, before anything is loaded. */
int follow_check(const struct options *o)
{
	struct statfs fs;
	struct proc_row row;

	if (o->listen >= 0)
		return node_check(o);
	if (o->pid) {
		int err = proctree_row(o->pid, &row);

		return err ? err : row.ours ? 0 : -EPERM;
	}
	if (!o->cgroup)
		return 0;
	cgroup_fd = open(o->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup_fd < 0)
		return -errno;
	return fstatfs(cgroup_fd, &fs) || fs.f_type != CGROUP2 ? -ENOTSUP : 0;
}

/* With the tracer attached and armed: announce this process and request those to follow. */
int follow_begin(const struct options *o, unsigned long long cookie)
{
	if (o->cgroup) {
		int err = tracer_want_cgroup(cgroup_fd);

		if (err)
			return err;
	}
	syscall(SYS_prctl, cookie, 0, 0, 0, 0); /* no such option: it only announces this process */
	return o->pid ? proctree_want(o->pid) : 0;
}

/* Whether any process is in the cgroup or below; true if that is unknown. */
static bool is_populated(void)
{
	char text[256];
	int fd = openat(cgroup_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	else
		return faccessat(cgroup_fd, "cgroup.procs", F_OK, 0) == 0; /* the root lacks it */
	if (n < 0)
		return errno != ENODEV; /* removed */
	text[n] = 0;
	return !strstr(text, "populated 0");
}

/* Whether requests are pending; drops those of processes that ended before they were adopted. */
bool follow_any_wanted(void)
{
	unsigned int pid = tracer_next_wanted(0);
	bool any = false;

	while (pid) {
		unsigned int next = tracer_next_wanted(pid);
		struct proc_row row;

		if (proctree_row((int)pid, &row))
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
	return !is_populated() &&
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

/* Read records until the duration is over, all processes have ended, or a signal asks to stop. */
void follow_until_end(const struct options *o, int signals)
{
	struct pollfd fds[] = {
		{.fd = tracer_epoll_fd(), .events = POLLIN},
		{.fd = signals, .events = POLLIN},
	};
	unsigned long long now = clock_ns(CLOCK_MONOTONIC);
	unsigned long long end = o->duration_ms ? now + o->duration_ms * 1000000ULL : ~0ULL;

	for (;;) {
		unsigned long long left = now < end ? (end - now) / 1000000 + 1 : 0;

		poll(fds, 2, left < 100 ? (int)left : 100);
		tracer_consume();
		now = clock_ns(CLOCK_MONOTONIC);
		collect_tick(now);
		if (now >= end || follow_asked_to_stop(signals) || all_ended(o))
			return;
	}
}
