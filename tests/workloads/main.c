// SPDX-License-Identifier: Apache-2.0
/* workload CASE, or workload all BASE: every case in its own process and directory. */
#include "workload.h"
#include <stdarg.h>
#include <sys/stat.h>

#ifndef GROUPS /* tests/adversary has its own cases */
#define GROUPS                                                                                     \
	rw_cases, fd_cases, copy_cases, name_cases, map_cases, process_cases, thread_cases,        \
		special_cases, uring_cases, aio_cases
#endif

static const struct workload *const groups[] = {GROUPS};

/* One write per line, so that lines of several processes do not mix. */
static void line(const char *format, ...)
{
	char text[16384];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		_exit(99);
}

static const char *quoted(const char *text)
{
	static __thread char out[4][4200 * 2]; /* threads of a case print concurrently */
	static __thread int turn;
	char *at = out[turn = (turn + 1) % 4];
	char *start = at;

	for (; *text; text++)
		at += sprintf(at, "%02x", (unsigned char)*text);
	*at = 0;
	return start;
}

void saw_by(pid_t pid, const char *path, const char *op, const char *how, long start, long end,
	    long bytes, long ops)
{
	line("{\"kind\": \"saw\", \"pid\": %d, \"path\": \"%s\", \"op\": \"%s\", \"how\": \"%s\", "
	     "\"start\": %ld, \"end\": %ld, \"bytes\": %ld, \"ops\": %ld}\n",
	     pid, quoted(path), op, how, start, end, bytes, ops);
}

void saw(const char *path, const char *op, const char *how, long start, long end, long bytes,
	 long ops)
{
	saw_by(getpid(), path, op, how, start, end, bytes, ops);
}

void named(const char *op, const char *path, const char *new_path)
{
	line("{\"kind\": \"named\", \"op\": \"%s\", \"path\": \"%s\", \"new_path\": \"%s\"}\n", op,
	     quoted(path), new_path ? quoted(new_path) : "");
}

void fact(const char *what, const char *path, const char *other)
{
	line("{\"kind\": \"fact\", \"what\": \"%s\", \"path\": \"%s\", \"other\": \"%s\"}\n", what,
	     quoted(path), other ? quoted(other) : "");
}

void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(99);
}

int make(const char *path, size_t size)
{
	static char block[65536];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	size_t left = size;

	must(fd >= 0, path);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(i * 31 + size);
	while (left) {
		size_t n = left < sizeof(block) ? left : sizeof(block);

		must(write(fd, block, n) == (ssize_t)n, path);
		left -= n;
	}
	if (size)
		saw(path, "write", "write", 0, (long)size, (long)size,
		    (long)((size + sizeof(block) - 1) / sizeof(block)));
	return fd;
}

void child(int (*run)(void))
{
	int status;
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (!pid)
		_exit(run());
	must(waitpid(pid, &status, 0) == pid && !status, "child");
}

static int run_case(const char *name)
{
	for (size_t g = 0; g < sizeof(groups) / sizeof(*groups); g++)
		for (const struct workload *w = groups[g]; w->name; w++)
			if (!strcmp(w->name, name))
				return w->run();
	fprintf(stderr, "no case %s\n", name);
	return 98;
}

static int run_all(const char *self, const char *base)
{
	char text[4200];

	for (size_t g = 0; g < sizeof(groups) / sizeof(*groups); g++) {
		for (const struct workload *w = groups[g]; w->name; w++) {
			int status, out;
			pid_t pid;

			snprintf(text, sizeof(text), "%s/%s.expect", base, w->name);
			out = open(text, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
			snprintf(text, sizeof(text), "%s/%s", base, w->name);
			must(out >= 0 && !mkdir(text, 0755), text);
			pid = fork();
			if (!pid) {
				must(!chdir(text) && dup2(out, 1) == 1, text);
				execl(self, self, w->name, NULL);
				_exit(97);
			}
			must(waitpid(pid, &status, 0) == pid, "waitpid");
			close(out);
			printf("%s %d\n", w->name, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
			fflush(stdout);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "all"))
		return run_all(argv[0], argv[2]);
	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (size_t g = 0; g < sizeof(groups) / sizeof(*groups); g++)
			for (const struct workload *w = groups[g]; w->name; w++)
				printf("%s\n", w->name);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "random"))
		return loss_random(atol(argv[2]), atol(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "processes"))
		return loss_processes(atol(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "files"))
		return loss_files(atol(argv[2]));
	if (argc == 2 && !strcmp(argv[1], "forever"))
		return loss_forever();
	return argc == 2 ? run_case(argv[1]) : 2;
}
