// SPDX-License-Identifier: Apache-2.0
/* Mappings that become readable or writable later. `saw` with -1 bytes: an upper bound. */
#include "../workloads/workload.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define LARGE (1L << 20)

static volatile char sink;

static char *map(const char *path, long size, int prot, int *fd)
{
	char *at;

	*fd = make(path, (size_t)size);
	at = mmap(NULL, (size_t)size, prot, MAP_SHARED, *fd, 0);
	must(at != MAP_FAILED, "mmap");
	return at;
}

static int made_writable(long size)
{
	int fd;
	char *at = map("f", size, PROT_READ, &fd);

	close(fd);
	for (long i = 0; i < size; i += 4096)
		sink = at[i];
	saw("f", "read", "mmap", 0, size, -1, 1);
	must(!mprotect(at, (size_t)size, PROT_READ | PROT_WRITE), "mprotect");
	for (long i = 0; i < size; i += 4096)
		at[i] = 7;
	saw("f", "write", "mmap", 0, size, -1, 1);
	return 0;
}

static int mappings_writable_later_small(void)
{
	return made_writable(20480);
}

static int mappings_writable_later_large(void)
{
	return made_writable(LARGE);
}

/* No access at first, as allocators and databases reserve address space. */
static int reserved(long size)
{
	int fd;
	char *at = map("f", size, PROT_NONE, &fd);

	must(!mprotect(at, (size_t)size, PROT_READ), "mprotect");
	for (long i = 0; i < size; i += 4096)
		sink = at[i];
	saw("f", "read", "mmap", 0, size, -1, 1);
	return 0;
}

static int mappings_readable_later_small(void)
{
	return reserved(20480);
}

static int mappings_readable_later_large(void)
{
	return reserved(LARGE);
}

/* Pages made writable without a page fault. */
static int mappings_populate_write(void)
{
	int fd;
	char *at = map("f", LARGE, PROT_READ | PROT_WRITE, &fd);

	if (madvise(at, LARGE, MADV_POPULATE_WRITE))
		return SKIPPED;
	for (long i = 0; i < LARGE; i += 4096)
		at[i] = 7;
	saw("f", "write", "mmap", 0, LARGE, -1, 1);
	fact("reads", "f", NULL);
	return 0;
}

/* Anonymous memory mapped over the first half; a part of the rest unmapped. */
static int mappings_fixed_over(void)
{
	int fd;
	char *at = map("f", LARGE, PROT_READ | PROT_WRITE, &fd);

	must(mmap(at, LARGE / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		  -1, 0) == at,
	     "mmap over it");
	memset(at, 1, LARGE); /* the first half no longer maps the file */
	must(!munmap(at + LARGE / 2, 65536), "munmap");
	saw("f", "write", "mmap", LARGE / 2, LARGE, -1, 1);
	fact("reads", "f", NULL);
	return 0;
}

/* Grown by a child that inherited the mapping. */
static int mappings_grown_after_fork(void)
{
	int fd, status;
	char *at = map("f", LARGE, PROT_READ, &fd);
	pid_t pid;

	must(!munmap(at + LARGE / 2, LARGE / 2), "munmap");
	fact("reads", "f", NULL);
	pid = fork();
	if (!pid) {
		at = mremap(at, LARGE / 2, LARGE, MREMAP_MAYMOVE);
		must(at != MAP_FAILED, "mremap");
		for (long i = 0; i < LARGE; i += 4096)
			sink = at[i];
		saw("f", "read", "mmap", LARGE / 2, LARGE, -1, 1);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	return WEXITSTATUS(status);
}

/* A file written in one call is cached in large folios: one fault maps up to 2 MiB. */
static char *in_large_folios(int prot)
{
	int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644);
	char *all = malloc(4 * LARGE), *at;

	memset(all, 1, 4 * LARGE);
	must(fd >= 0 && write(fd, all, 4 * LARGE) == 4 * LARGE, "write");
	saw("f", "write", "write", 0, 4 * LARGE, 4 * LARGE, 1);
	at = mmap(NULL, 4 * LARGE, prot, MAP_SHARED, fd, 0);
	must(at != MAP_FAILED, "mmap");
	return at;
}

static int mappings_large_folios_read(void)
{
	char *at = in_large_folios(PROT_READ);

	for (long i = 0; i < 4 * LARGE; i += 4096)
		sink = at[i];
	saw("f", "read", "mmap", 0, 4 * LARGE, -1, 1);
	return 0;
}

static int mappings_large_folios_written(void)
{
	char *at = in_large_folios(PROT_READ | PROT_WRITE);

	for (long i = 0; i < 4 * LARGE; i += 4096)
		at[i] = 7;
	saw("f", "write", "mmap", 0, 4 * LARGE, -1, 1);
	fact("reads", "f", NULL);
	return 0;
}

/* Mapped by a large page table entry first; the write then splits the entry. */
static int mappings_large_folios_read_then_written(void)
{
	char *at = in_large_folios(PROT_READ | PROT_WRITE);

	for (long i = 0; i < 4 * LARGE; i += 4096)
		sink = at[i];
	for (long i = 0; i < 4 * LARGE; i += 4096)
		at[i] = 7;
	saw("f", "write", "mmap", 0, 4 * LARGE, -1, 1);
	saw("f", "read", "mmap", 0, 4 * LARGE, -1, 1);
	return 0;
}

static atomic_int finished;

static char *anonymous(size_t size, int prot)
{
	char *at = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(at != MAP_FAILED, "mmap");
	return at;
}

static void *change_mappings(void *unused)
{
	while (!finished) {
		char *at = anonymous(LARGE, PROT_READ | PROT_WRITE);

		at[0] = 1;
		must(!munmap(at, LARGE), "munmap");
	}
	return unused;
}

/* A mapping cannot be looked up while another thread changes mappings. */
static int among_changes(int (*run)(void))
{
	pthread_t threads[3];
	int status;

	for (int i = 0; i < 3; i++)
		must(!pthread_create(&threads[i], NULL, change_mappings, NULL), "thread");
	status = run();
	finished = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return status;
}

static int change_anonymous(void)
{
	for (int i = 0; i < 503; i++) {
		char *at = anonymous(2 * LARGE, PROT_NONE);

		at = mremap(at, 2 * LARGE, 4 * LARGE, MREMAP_MAYMOVE);
		must(at != MAP_FAILED, "mremap");
		must(!mprotect(at + LARGE, 4096, PROT_READ | PROT_WRITE), "mprotect");
		at[LARGE] = 1;
		must(!munmap(at, 4 * LARGE), "munmap");
	}
	return 0;
}

/*
 * With a file written before the changes, and one mapped as Java maps its
 * shared counters: no access can be missed.
 */
static int mappings_busy_anonymous(void)
{
	int fd;

	memset(map("g", LARGE, PROT_READ | PROT_WRITE, &fd), 1, LARGE);
	saw("g", "read", "mmap", 0, LARGE, -1, 1);
	saw("g", "write", "mmap", 0, LARGE, -1, 1);
	map("f", 20480, PROT_READ | PROT_WRITE, &fd);
	saw("f", "read", "mmap", 0, 20480, -1, 1);
	saw("f", "write", "mmap", 0, 20480, -1, 1);
	return among_changes(change_anonymous);
}

static int large_made_writable(void)
{
	return made_writable(LARGE);
}

static int mappings_busy_shared(void)
{
	fact("counted", "f", NULL);
	return among_changes(large_made_writable);
}

static void *use_mapping(void *mapped)
{
	char *at = mapped;

	for (long i = 0; i < LARGE; i += 4096)
		at[i] = at[LARGE + i];
	return NULL;
}

/* The thread that reads and writes the file did not map it. */
static int mappings_used_by_a_thread(void)
{
	pthread_t thread;
	int fd;
	char *at = map("f", 2 * LARGE, PROT_READ | PROT_WRITE, &fd);

	must(!pthread_create(&thread, NULL, use_mapping, at), "thread");
	must(!pthread_join(thread, NULL), "join");
	saw("f", "read", "mmap", LARGE, 2 * LARGE, -1, 1);
	saw("f", "write", "mmap", 0, LARGE, -1, 1);
	return 0;
}

#define PAGES_FAR_APART 3

/* Accesses that cannot be located while mappings change are located later. */
static int few_writes(void)
{
	int fd;
	char *at = map("f", PAGES_FAR_APART * LARGE, PROT_READ | PROT_WRITE, &fd);

	for (long i = 0; i < PAGES_FAR_APART; i++) {
		at[i * LARGE] = 7;
		saw("f", "write", "mmap", i * LARGE, i * LARGE + 4096, -1, 1);
	}
	fact("reads", "f", NULL);
	return 0;
}

static int mappings_few_writes_among_changes(void)
{
	return among_changes(few_writes);
}

const struct workload mapping_cases[] = {
	{"mappings_busy_anonymous", mappings_busy_anonymous},
	{"mappings_busy_shared", mappings_busy_shared},
	{"mappings_few_writes_among_changes", mappings_few_writes_among_changes},
	{"mappings_used_by_a_thread", mappings_used_by_a_thread},
	{"mappings_large_folios_read", mappings_large_folios_read},
	{"mappings_large_folios_written", mappings_large_folios_written},
	{"mappings_large_folios_read_then_written", mappings_large_folios_read_then_written},
	{"mappings_writable_later_small", mappings_writable_later_small},
	{"mappings_writable_later_large", mappings_writable_later_large},
	{"mappings_readable_later_small", mappings_readable_later_small},
	{"mappings_readable_later_large", mappings_readable_later_large},
	{"mappings_populate_write", mappings_populate_write},
	{"mappings_fixed_over", mappings_fixed_over},
	{"mappings_grown_after_fork", mappings_grown_after_fork},
	{0},
};
