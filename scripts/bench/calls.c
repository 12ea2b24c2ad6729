// SPDX-License-Identifier: Apache-2.0
/*
 * Nanoseconds of processor time of small calls and processes, the least of many batches; written to
 * the file that OUT names. Batches are short, so that one of them is undisturbed on a busy machine too, and long
 * enough that each has its part of what comes now and then: pages of the recorder's file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS 5000
#define OPENS 1000
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

/* Seconds on the wall count where the recorder's work is another process's: WALL is set. */
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

static long waited(pid_t pid)
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
	return waited(pid);
}

static long spawned(const char *program, char *argument)
{
	char *words[] = {"calls", argument, NULL};
	pid_t pid = fork();

	if (!pid) {
		execv(program, words);
		_exit(97);
	}
	return waited(pid);
}

static long do_true(long i)
{
	(void)i;
	return spawned("/bin/true", NULL);
}

static long do_program(long i)
{
	(void)i;
	return spawned("/proc/self/exe", "files");
}

/* The program of do_program: each file is made or written over, and read. */
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

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		long (*call)(long i);
		long count;
	} rows[] = {
		{"read", do_read, CALLS},
		{"pread, one after the other", do_pread, CALLS},
		{"pread at random places", do_random, CALLS},
		{"write", do_write, CALLS},
		{"open + close", do_open, OPENS},
		{"fork + exit", do_fork, FORKS},
		{"spawn of /bin/true", do_true, SPAWNS},
		{"program of 20 files", do_program, SPAWNS},
	};

	if (argc > 1 && !strcmp(argv[1], "files"))
		return use_files();
	const char *given = getenv("BATCHES");
	int batches = given ? atoi(given) : 120;
	FILE *out = fopen(getenv("OUT") ? getenv("OUT") : "/dev/stdout", "w");

	fd = open("bench.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (!out || fd < 0 || ftruncate(fd, SIZE))
		return 1;
	for (unsigned int r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		double least = 1e18;

		for (int k = 0; k < batches; k++) {
			double begin = now();

			for (long i = 0; i < rows[r].count; i++)
				if (rows[r].call(i) != 1)
					return 1;
			double each = (now() - begin) / (double)rows[r].count;

			least = each < least ? each : least;
		}
		fprintf(out, "%s\t%.1f\n", rows[r].name, least);
	}
	return fclose(out) != 0;
}
