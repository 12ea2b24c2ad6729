// SPDX-License-Identifier: Apache-2.0
/*
 * Nanoseconds of processor time of small calls and processes, minimum of many batches, written to
 * the file OUT. Batches are short, so that some are undisturbed even on a busy machine, but long
 * enough that each includes periodic costs: new pages of the recorder's file.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define CALLS 5000
#define OPENS 1000
#define MAKES 20
#define FORKS 40
#define SPAWNS 15
#define FILES 20
#define SIZE 100000

static int fd;
static unsigned int seed = 1;
static char byte = 'x';

static double of_children(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
}

/* WALL selects wall time, for recorders that work in another process. */
static double now(void)
{
	struct timespec t;

	if (getenv("WALL")) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec + of_children();
}

static long do_read(long i)
{
	return i ? read(fd, &byte, 1) : lseek(fd, 0, SEEK_SET) + 1;
}

static long do_pread(long i)
{
	return pread(fd, &byte, 1, i);
}

static long do_random(long i)
{
	(void)i;
	seed = seed * 1103515245u + 12345u;
	return pread(fd, &byte, 1, seed % SIZE);
}

static long do_write(long i)
{
	return i ? write(fd, &byte, 1) : lseek(fd, 0, SEEK_SET) + 1;
}

static long do_open(long i)
{
	(void)i;
	return !close(open("bench.dat", O_RDONLY));
}

/* Make and remove a file; `own`: set an attribute on it, like the call of a store. */
static long make_file(char letter, long i, int own)
{
	char name[32];

	snprintf(name, sizeof(name), "%c_%ld.dat", letter, i);
	int file = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);

	if (own)
		fsetxattr(file, "user.DP", "local", 5, 0);
	return file >= 0 && !close(file) && !unlink(name);
}

static long do_make(long i)
{
	return make_file('n', i, 0);
}

static long do_hinted(long i)
{
	return make_file('h', i, 0);
}

static long do_own(long i)
{
	return make_file('o', i, 1);
}

static long wait_for(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && !status;
}

static long do_fork(long i)
{
	pid_t pid = fork();

	(void)i;
	if (!pid)
		_exit(0);
	return wait_for(pid);
}

static long spawn(const char *program, char *argument)
{
	char *words[] = {"calls", argument, NULL};
	pid_t pid = fork();

	if (!pid) {
		execv(program, words);
		_exit(97);
	}
	return wait_for(pid);
}

static long do_true(long i)
{
	(void)i;
	return spawn("/bin/true", NULL);
}

static long do_program(long i)
{
	(void)i;
	return spawn("/proc/self/exe", "files");
}

/* The program of do_program: create or overwrite files, and read them. */
static int use_files(void)
{
	static char block[4096];

	for (int i = 0; i < FILES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "small%d", i);
		int file = open(name, O_RDWR | O_CREAT, 0644);

		if (write(file, block, sizeof(block)) != sizeof(block) ||
		    lseek(file, 0, SEEK_SET) || read(file, block, sizeof(block)) != sizeof(block) ||
		    close(file))
			return 1;
	}
	return 0;
}

struct row {
	const char *name;
	long (*call)(long i);
	long count;
	int threaded; /* glibc 2.41 and later make calls differently in threads */
	double least; /* minimum of all batches, per call */
};

static void *measure(void *given)
{
	struct row *row = given;
	const char *text = getenv("BATCHES");

	/* its own file: after a fork, each read must query the position, which may be shared */
	if (row->threaded && (close(fd) || (fd = open("bench.dat", O_RDWR)) < 0))
		exit(1);
	row->least = 1e18;
	for (int k = text ? atoi(text) : 120; k; k--) {
		double begin = now();

		for (long i = 0; i < row->count; i++)
			if (row->call(i) != 1)
				exit(1);
		double each = (now() - begin) / (double)row->count;

		row->least = each < row->least ? each : row->least;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct row rows[] = {
		{"read", do_read, CALLS, 0, 0},
		{"pread, one after the other", do_pread, CALLS, 0, 0},
		{"pread at random places", do_random, CALLS, 0, 0},
		{"write", do_write, CALLS, 0, 0},
		{"open + close", do_open, OPENS, 0, 0},
		{"make + remove", do_make, MAKES, 0, 0},
		{"make + remove with a hint", do_hinted, MAKES, 0, 0},
		{"make + remove with an own attribute", do_own, MAKES, 0, 0},
		{"fork + exit", do_fork, FORKS, 0, 0},
		{"spawn of /bin/true", do_true, SPAWNS, 0, 0},
		{"program of 20 files", do_program, SPAWNS, 0, 0},
		{"in a thread: read", do_read, CALLS, 1, 0},
		{"in a thread: pread", do_pread, CALLS, 1, 0},
		{"in a thread: open + close", do_open, OPENS, 1, 0},
	};

	if (argc > 1 && !strcmp(argv[1], "files"))
		return use_files();
	FILE *out = fopen(getenv("OUT") ? getenv("OUT") : "/dev/stdout", "w");

	fd = open("bench.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (!out || fd < 0 || ftruncate(fd, SIZE))
		return 1;
	for (unsigned int r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		pthread_t thread;

		if (!rows[r].threaded)
			measure(&rows[r]);
		else if (pthread_create(&thread, NULL, measure, &rows[r]) ||
			 pthread_join(thread, NULL))
			return 1;
		fprintf(out, "%s\t%.1f\n", rows[r].name, rows[r].least);
	}
	return fclose(out) != 0;
}
