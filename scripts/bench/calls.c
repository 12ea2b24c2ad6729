// SPDX-License-Identifier: Apache-2.0
/*
 * Nanoseconds of processor time of small calls, the least of many batches; written to the file that
 * OUT names. Batches are short, so that one of them is undisturbed on a busy machine too, and long
 * enough that each has its part of what comes now and then: pages of the recorder's file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 120
#define CALLS 5000
#define OPENS 1000
#define SIZE 100000

static int fd;
static unsigned int seed = 1;
static char byte = 'x';

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
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

int main(void)
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
	};
	FILE *out = fopen(getenv("OUT") ? getenv("OUT") : "/dev/stdout", "w");

	fd = open("bench.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (!out || fd < 0 || ftruncate(fd, SIZE))
		return 1;
	for (unsigned int r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		double least = 1e18;

		for (int k = 0; k < BATCHES; k++) {
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
