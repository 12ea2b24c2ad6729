// SPDX-License-Identifier: Apache-2.0
/* Mappings that become readable or writable later. `saw` with -1 bytes: an upper bound. */
#include "../workloads/workload.h"
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

/* First no access at all, as allocators and databases reserve address space. */
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

/* Pages made writable without a fault of the processor. */
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

/* Other memory put over a part, the rest unmapped piece by piece. */
static int mappings_fixed_over(void)
{
	int fd;
	char *at = map("f", LARGE, PROT_READ | PROT_WRITE, &fd);

	must(mmap(at, LARGE / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		  -1, 0) == at,
	     "mmap over it");
	memset(at, 1, LARGE); /* the first half is no file any more */
	must(!munmap(at + LARGE / 2, 65536), "munmap");
	saw("f", "write", "mmap", LARGE / 2, LARGE, -1, 1);
	fact("reads", "f", NULL);
	return 0;
}

/* Grown by a child that only inherited it. */
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
		fact("read_by_other", "f", NULL);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	return WEXITSTATUS(status);
}

const struct workload mapping_cases[] = {
	{"mappings_writable_later_small", mappings_writable_later_small},
	{"mappings_writable_later_large", mappings_writable_later_large},
	{"mappings_readable_later_small", mappings_readable_later_small},
	{"mappings_readable_later_large", mappings_readable_later_large},
	{"mappings_populate_write", mappings_populate_write},
	{"mappings_fixed_over", mappings_fixed_over},
	{"mappings_grown_after_fork", mappings_grown_after_fork},
	{0},
};
