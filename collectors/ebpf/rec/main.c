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
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "rec.h"

static const char usage[] =
	"usage: tracehint-rec -o DIR [options] -- COMMAND [ARGUMENT]...\n"
	"       tracehint-rec -o DIR [options] --pid PID | --cgroup DIR\n"
	"       tracehint-rec -o DIR [options] --listen FD --lock FD\n"
	"       tracehint-rec --check\n"
	"  -o DIR              existing empty directory for the spool\n"
	"  --ring BYTES        life-cycle ring, a power of two (default 8388608)\n"
	"  --extents BYTES     extents ring, a power of two (default 8388608)\n"
	"  --processes N       processes followed at the same time (default 4096)\n"
	"  --linger MS         follow processes that outlive the command so long (default 1000)\n"
	"  --pid PID           follow a running process and its descendants\n"
	"  --cgroup DIR        follow the processes of a cgroup v2 directory\n"
	"  --duration MS       of following (default: until the processes have ended)\n"
	"  --listen FD         follow the processes that connect to this socket (see join.c)\n"
	"  --lock FD           file that they lock\n"
	"  --ready FD          write one byte there when it records\n"
	"  --idle MS           end when nobody was followed for so long (default: never)\n"
	"  --no-direct         read kernel memory as on Linux before 6.2\n";

unsigned long long clock_ns(int clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
}

static int complain(const char *what, int err)
{
	fprintf(stderr, "tracehint-rec: %s: %s\n", what, strerror(err < 0 ? -err : err));
	return REC_FAILED;
}

static char log_text[65536];

/* libbpf says more than errno; kept for the message when loading fails. */
static int on_log(enum libbpf_print_level level, const char *format, va_list args)
{
	size_t used = strlen(log_text);

	if (level == LIBBPF_WARN && used < sizeof(log_text) - 1)
		vsnprintf(log_text + used, sizeof(log_text) - used, format, args);
	return 0;
}

/* In how many ways what runs already is to be followed. */
static int follows(const struct options *o)
{
	return (o->pid > 0) + (o->cgroup != NULL) + (o->listen >= 0);
}

static const char *subject(const struct options *o)
{
	return o->cgroup ? o->cgroup : o->listen >= 0 ? "the socket" : "the process";
}

static int parse(int argc, char **argv, struct options *o)
{
	enum {
		RING = 256,
		EXTENTS,
		PROCESSES,
		LINGER,
		CHECK,
		NO_DIRECT,
		PID,
		CGROUP,
		DURATION,
		LISTEN,
		LOCK,
		READY,
		IDLE
	};
	static const struct option table[] = {
		{"ring", required_argument, NULL, RING},
		{"extents", required_argument, NULL, EXTENTS},
		{"processes", required_argument, NULL, PROCESSES},
		{"linger", required_argument, NULL, LINGER},
		{"check", no_argument, NULL, CHECK},
		{"no-direct", no_argument, NULL, NO_DIRECT},
		{"pid", required_argument, NULL, PID},
		{"cgroup", required_argument, NULL, CGROUP},
		{"duration", required_argument, NULL, DURATION},
		{"listen", required_argument, NULL, LISTEN},
		{"lock", required_argument, NULL, LOCK},
		{"ready", required_argument, NULL, READY},
		{"idle", required_argument, NULL, IDLE},
		{},
	};
	int c;

	while ((c = getopt_long(argc, argv, "+o:", table, NULL)) != -1) {
		unsigned int n = optarg ? (unsigned int)strtoul(optarg, NULL, 10) : 0;

		switch (c) {
		case 'o':
			o->spool = optarg;
			break;
		case RING:
			o->ring = n;
			break;
		case EXTENTS:
			o->extents_ring = n;
			break;
		case PROCESSES:
			o->slots = n + 1;
			break;
		case LINGER:
			o->linger_ms = n;
			break;
		case CHECK:
			o->check = true;
			break;
		case NO_DIRECT:
			o->no_direct = true;
			break;
		case PID:
			o->pid = (int)n;
			break;
		case CGROUP:
			o->cgroup = optarg;
			break;
		case DURATION:
			o->duration_ms = n;
			break;
		case LISTEN:
			o->listen = (int)n;
			break;
		case LOCK:
			o->lock = (int)n;
			break;
		case READY:
			o->ready = (int)n;
			break;
		case IDLE:
			o->idle_ms = n;
			break;
		default:
			return -EINVAL;
		}
	}
	o->command = argv + optind;
	if (o->check)
		return 0;
	if ((*o->command != NULL) + follows(o) != 1 || (o->listen >= 0 && o->lock < 0))
		return -EINVAL;
	return o->spool && o->slots > 1 && o->slots < 65536 ? 0 : -EINVAL;
}

/* How BOOTTIME maps to REALTIME: the tightest of several paired readings. */
static void write_start(const struct options *o, pid_t command)
{
	unsigned long long best = ~0ULL, boot = 0, real = 0;
	struct timespec tick = {};
	char text[512];

	for (int i = 0; i < 16; i++) {
		unsigned long long a = clock_ns(CLOCK_BOOTTIME), r = clock_ns(CLOCK_REALTIME);
		unsigned long long b = clock_ns(CLOCK_BOOTTIME);

		if (b - a < best) {
			best = b - a;
			boot = a + (b - a) / 2;
			real = r;
		}
	}
	clock_getres(CLOCK_REALTIME_COARSE, &tick);
	snprintf(text, sizeof(text),
		 "{\"version\": %d, \"boot_ns\": %llu, \"real_ns\": %llu, \"error_ns\": %llu, "
		 "\"tick_ns\": %ld, \"pid\": %d, \"command\": %d, \"joined\": %s}\n",
		 TH_SPOOL_VERSION, boot, real, best, tick.tv_nsec, (int)getpid(), (int)command,
		 o->listen >= 0 ? "true" : "false");
	if (spool_write_json(o->spool, "start.json", text))
		fprintf(stderr, "tracehint-rec: %s: cannot write start.json\n", o->spool);
}

static unsigned long long load_ns;

static void write_end(const struct options *o, int status, unsigned int left)
{
	struct rusage self;
	char text[512];

	getrusage(RUSAGE_SELF, &self);
	snprintf(text, sizeof(text),
		 "{\"exit_status\": %d, \"signal\": %d, \"outlived\": %u, \"spool_lost\": %llu, "
		 "\"max_rss_kb\": %ld, \"cpu_ms\": %ld, \"load_ms\": %llu}\n",
		 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		 WIFSIGNALED(status) ? WTERMSIG(status) : 0, left, spool_lost(), self.ru_maxrss,
		 (self.ru_utime.tv_sec + self.ru_stime.tv_sec) * 1000 +
			 (self.ru_utime.tv_usec + self.ru_stime.tv_usec) / 1000,
		 load_ns / 1000000);
	if (spool_write_json(o->spool, "end.json", text))
		fprintf(stderr, "tracehint-rec: %s: cannot write end.json\n", o->spool);
}

/* Read records until the command and what it left behind have ended; returns its status. */
static int follow(const struct options *o, struct child *child, int signals)
{
	struct pollfd fds[] = {
		{.fd = tracer_epoll_fd(), .events = POLLIN},
		{.fd = signals, .events = POLLIN},
		{.fd = child->pidfd, .events = POLLIN},
	};
	unsigned long long next_tick = clock_ns(CLOCK_MONOTONIC) + 1000000000ULL, end = 0, now;
	int status = 0;

	for (;;) {
		poll(fds, end ? 2 : 3, end ? 10 : 200);
		tracer_consume();
		signal_forward(signals, child->pid);
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= next_tick) {
			collect_tick();
			next_tick = now + 1000000000ULL;
		}
		if (!end && waitpid(child->pid, &status, WNOHANG) == child->pid)
			end = now + o->linger_ms * 1000000ULL;
		if (end && (!tracer_live() || now >= end))
			return status;
	}
}

/* Follow what runs already: no child, no command's status. */
static int run_attached(struct options *o, unsigned long long cookie)
{
	int signals = signals_fd(), err;

	tracer_arm();
	err = follow_begin(o, cookie);
	if (!err && tracer_armed())
		err = ESRCH;
	if (err)
		return complain(subject(o), err);
	write_start(o, 0);
	if (o->listen >= 0)
		node_serve(o, signals);
	else
		follow_until_end(o, signals);
	tracer_finish();
	write_end(o, 0, tracer_live());
	return 0;
}

static int run(struct options *o)
{
	struct child child = {};
	unsigned long long cookie = 0;
	int err, status, signals, code = REC_FAILED;

	if (getrandom(&cookie, sizeof(cookie), 0) != sizeof(cookie))
		return complain("random numbers", errno);
	cookie = cookie << 32 | 0x7fffffff; /* no prctl option has this number */
	if (!o->check) {
		err = follow_check(o);
		if (err)
			return complain(subject(o), err);
		err = spool_open(o->spool);
		if (err)
			return complain(o->spool, err);
		signals_block();
		err = follows(o) ? 0 : child_start(&child, o->command, cookie);
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
	if (follows(o)) {
		code = run_attached(o, cookie);
		goto cleanup;
	}
	write_start(o, child.pid);
	tracer_arm();
	err = child_announce(&child);
	if (err || tracer_armed()) {
		code = complain("the command could not be followed", err ? err : ESRCH);
		goto cleanup;
	}
	signals = signals_fd();
	err = child_exec(&child);
	status = follow(o, &child, signals);
	child.pid = 0;
	tracer_finish();
	write_end(o, status, tracer_live());
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
	};

	if (parse(argc, argv, &options)) {
		fputs(usage, stderr);
		return REC_FAILED;
	}
	return run(&options);
}
