// SPDX-License-Identifier: Apache-2.0
/*
 * tracehint-rec: runs a command and records what its processes do to files.
 * Open, configure, load, attach, run, read, finish. Exit code: the command's
 * own, 128 + signal, or 125 to 127 as env and timeout use them; when recording
 * cannot begin, nothing has been run.
 */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "rec.h"
#include "standard.h"

static int complain(const char *what, int err)
{
	fprintf(stderr, "tracehint-rec: %s: %s\n", what, strerror(err < 0 ? -err : err));
	return REC_FAILED;
}

static char log_text[65536];

/* libbpf's warnings are more precise than errno; kept for the message if loading fails. */
static int on_log(enum libbpf_print_level level, const char *format, va_list args)
{
	size_t used = strlen(log_text);

	if (level == LIBBPF_WARN && used < sizeof(log_text) - 1)
		vsnprintf(log_text + used, sizeof(log_text) - used, format, args);
	return 0;
}

static const char *subject(const struct options *o)
{
	return o->cgroup ? o->cgroup : o->listen >= 0 ? "the socket" : "the process";
}

static unsigned long long load_ns;

/* Read records until all processes or the linger time have ended; return the command's status. */
static int follow(const struct options *o, struct child *child, int signals)
{
	struct pollfd fds[] = {
		{.fd = tracer_epoll_fd(), .events = POLLIN},
		{.fd = signals, .events = POLLIN},
		{.fd = child->pidfd, .events = POLLIN},
	};
	unsigned long long end = 0, now;
	int status = 0;

	for (;;) {
		poll(fds, end ? 2 : 3, end ? 10 : 200);
		tracer_consume();
		signal_forward(signals, child->pid);
		now = clock_ns(CLOCK_MONOTONIC);
		collect_tick(now);
		if (!end && waitpid(child->pid, &status, WNOHANG) == child->pid)
			end = now + o->linger_ms * 1000000ULL;
		if (end && (!tracer_live() || now >= end))
			return status;
	}
}

/* Follow running processes: no child, no exit status. */
static int run_attached(struct options *o, unsigned long long cookie)
{
	int signals = signals_fd(), err;

	tracer_arm();
	err = follow_begin(o, cookie);
	if (!err && tracer_armed())
		err = ESRCH;
	if (err)
		return complain(subject(o), err);
	stamp_start(o, 0);
	if (o->listen >= 0)
		node_serve(o, signals);
	else
		follow_until_end(o, signals);
	tracer_finish();
	stamp_end(o, 0, tracer_live(), load_ns);
	return 0;
}

static int run(struct options *o)
{
	struct child child = {};
	unsigned long long cookie = 0;
	int err, status, signals, code = REC_FAILED;

	if (getrandom(&cookie, sizeof(cookie), 0) != sizeof(cookie))
		return complain("cannot read random numbers", errno);
	cookie = cookie << 32 | 0x7fffffff; /* no prctl option has this number */
	if (!o->check) {
		err = follow_check(o);
		if (err)
			return complain(subject(o), err);
		err = spool_open(o->spool);
		if (err)
			return complain(o->spool, err);
		signals_block();
		err = options_follow(o) ? 0 : child_start(&child, o, cookie);
		if (err) {
			code = complain("cannot fork", err);
			goto cleanup;
		}
	}
	libbpf_set_print(on_log);
	load_ns = clock_ns(CLOCK_MONOTONIC);
	err = tracer_load(o, cookie);
	if (!err)
		err = tracer_attach();
	load_ns = clock_ns(CLOCK_MONOTONIC) - load_ns;
	if (err) {
		features_print_missing(stderr);
		code = complain("cannot load the tracer", err);
		fputs(log_text, stderr);
		goto cleanup;
	}
	if (o->check) {
		code = 0;
		goto cleanup;
	}
	err = privileges_drop();
	if (err) {
		code = complain("cannot drop privileges", err);
		goto cleanup;
	}
	if (options_follow(o)) {
		code = run_attached(o, cookie);
		goto cleanup;
	}
	stamp_start(o, child.pid);
	tracer_arm();
	err = child_announce(&child);
	if (err || tracer_armed()) {
		code = complain("cannot follow the command", err ? err : ESRCH);
		goto cleanup;
	}
	signals = signals_fd();
	if (o->ready >= 0) /* reported here, as files may disappear */
		dprintf(o->ready, "%d\n", (int)child.pid);
	err = child_exec(&child);
	status = follow(o, &child, signals);
	child.pid = 0;
	if (o->ready >= 0)
		dprintf(o->ready, "%d %d\n",
			WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
			WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	tracer_finish();
	stamp_end(o, status, tracer_live(), load_ns);
	code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (err)
		fprintf(stderr, "tracehint-rec: %s: %s\n", o->command[0], strerror(err));

cleanup:
	child_abandon(&child);
	tracer_free();
	if (!o->check)
		spool_close();
	return code;
}

int main(int argc, char **argv)
{
	struct options options = {
		.ring = 8 << 20,
		.extents_ring = 8 << 20,
		.slots = 4097,
		.linger_ms = 1000,
		.listen = -1,
		.lock = -1,
		.ready = -1,
		.environment = -1,
	};

	if (standard_fds_hold())
		return REC_FAILED;
	if (options_parse(argc, argv, &options)) {
		fputs(options_usage, stderr);
		return REC_FAILED;
	}
	if (options.ready >= 0)
		fcntl(options.ready, F_SETFD, FD_CLOEXEC);
	if (options.environment >= 0)
		fcntl(options.environment, F_SETFD, FD_CLOEXEC);
	if (options.version)
		return printf("%d\n", TH_SPOOL_VERSION) < 0 || fflush(stdout) ? REC_FAILED : 0;
	return run(&options);
}
