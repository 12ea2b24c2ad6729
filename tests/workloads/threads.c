// SPDX-License-Identifier: Apache-2.0
/* Threads share descriptors; each works on its own part. */
#include "workload.h"
#include <pthread.h>

#define THREADS 8
#define PIECE 1009
#define PIECES 101

static int fd;
static pthread_barrier_t barrier;

static void *stripe(void *arg)
{
	long n = (long)arg, at = n * PIECES * PIECE;
	char buffer[PIECE];

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < PIECES; i++)
		must(pread(fd, buffer, PIECE, at + i * PIECE) == PIECE, "pread");
	return NULL;
}

static int thread_stripes(void)
{
	pthread_t threads[THREADS];

	fd = make("f", THREADS * PIECES * PIECE);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, stripe, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	saw("f", "read", "read", 0, THREADS * PIECES * PIECE, THREADS * PIECES * PIECE,
	    THREADS * PIECES);
	fact("few_runs", "f", "24");
	return 0;
}

static void *own_file(void *arg)
{
	char name[16], buffer[PIECE] = {};
	int own;

	snprintf(name, sizeof(name), "t%ld", (long)arg);
	own = open(name, O_RDWR | O_CREAT, 0644);
	for (int i = 0; i < 13; i++)
		must(write(own, buffer, PIECE) == PIECE, "write");
	close(own);
	saw(name, "write", "write", 0, 13 * PIECE, 13 * PIECE, 13);
	return NULL;
}

static int thread_files(void)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, own_file, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static void *becomes(void *arg)
{
	(void)arg;
	execl("/bin/sh", "sh", "-c", "exec cp --reflink=never f g", NULL);
	return NULL;
}

static int thread_exec(void)
{
	pthread_t thread;

	close(make("f", 3001));
	saw("f", "read", "read", 0, 3001, 3001, 1);
	saw("g", "write", "write", 0, 3001, 3001, 1);
	pthread_create(&thread, NULL, becomes, NULL);
	pthread_join(thread, NULL);
	return 97;
}

static void *last(void *arg)
{
	char buffer[PIECE] = {};

	(void)arg;
	usleep(20000); /* the first thread has ended */
	must(write(fd, buffer, 211) == 211, "write");
	saw("f", "write", "write", 0, 211, 211, 1);
	_exit(0);
}

static int thread_outlives_first(void)
{
	pthread_t thread;

	fd = make("f", 0);
	pthread_create(&thread, NULL, last, NULL);
	pthread_exit(NULL);
}

const struct workload thread_cases[] = {
	{"thread_stripes", thread_stripes},
	{"thread_files", thread_files},
	{"thread_exec", thread_exec},
	{"thread_outlives_first", thread_outlives_first},
	{0},
};
