// SPDX-License-Identifier: Apache-2.0
/* Memory mappings: the trace may state an upper bound, never less than the touched pages. */
#include "workload.h"
#include <sys/mman.h>

#define PAGE 4096L

static volatile char sink;

static int map_read(void)
{
	int fd = make("f", 64 * PAGE + 101);
	char *p = mmap(NULL, 64 * PAGE + 101, PROT_READ, MAP_PRIVATE, fd, 0);

	must(p != MAP_FAILED, "mmap");
	close(fd);
	for (long i = 0; i < 64; i++)
		sink = p[i * PAGE];
	saw("f", "read", "mmap", 0, 64 * PAGE, -1, -1);
	return 0;
}

static int map_part(void)
{
	int fd = make("f", 1024 * PAGE);
	char *p = mmap(NULL, 8 * PAGE, PROT_READ, MAP_SHARED, fd, 512 * PAGE);

	must(p != MAP_FAILED, "mmap");
	for (long i = 0; i < 8; i++)
		sink = p[i * PAGE];
	saw("f", "read", "mmap", 512 * PAGE, 520 * PAGE, -1, -1);
	return 0;
}

static int map_write(void)
{
	int fd = make("f", 16 * PAGE);
	char *p = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	must(p != MAP_FAILED, "mmap");
	for (long i = 0; i < 16; i++)
		p[i * PAGE] = 1;
	must(!msync(p, 16 * PAGE, MS_SYNC), "msync");
	saw("f", "read", "mmap", 0, 16 * PAGE, -1, -1);
	saw("f", "write", "mmap", 0, 16 * PAGE, -1, -1);
	return 0;
}

/* All pages are mapped by reads; then few are written, one of them twice. */
static int map_write_few(void)
{
	static const long pages[] = {101, 503, 503, 1009};
	int fd = make("f", 1024 * PAGE);
	char *p = mmap(NULL, 1024 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	must(p != MAP_FAILED, "mmap");
	for (long i = 0; i < 1024; i++)
		sink = p[i * PAGE];
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		p[pages[i] * PAGE + 7] = 1;
	saw("f", "read", "mmap", 0, 1024 * PAGE, -1, -1);
	saw("f", "write", "mmap", 101 * PAGE, 102 * PAGE, -1, -1);
	saw("f", "write", "mmap", 1009 * PAGE, 1010 * PAGE, -1, -1);
	fact("sparse_writes", "f", "32768"); /* not the 4 MiB of the mapping */
	return 0;
}

/* The kernel writes into the mapping for a system call. */
static int map_read_into(void)
{
	int fd = make("f", 1024 * PAGE), from = make("g", 2 * PAGE);
	char *p = mmap(NULL, 1024 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	must(p != MAP_FAILED, "mmap");
	for (long i = 0; i < 1024; i++)
		sink = p[i * PAGE];
	must(pread(from, p + 503 * PAGE, 2 * PAGE, 0) == 2 * PAGE, "pread");
	saw("f", "read", "mmap", 0, 1024 * PAGE, -1, -1);
	saw("f", "write", "mmap", 503 * PAGE, 505 * PAGE, -1, -1);
	saw("g", "read", "read", 0, 2 * PAGE, 2 * PAGE, 1);
	fact("sparse_writes", "f", "32768");
	return 0;
}

static int map_private_write(void)
{
	int fd = make("f", 16 * PAGE);
	char *p = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	must(p != MAP_FAILED, "mmap");
	p[0] = 1; /* private to this process */
	saw("f", "read", "mmap", 0, 16 * PAGE, -1, -1);
	return 0;
}

static int map_remap(void)
{
	int fd = make("f", 64 * PAGE);
	char *p = mmap(NULL, 32 * PAGE, PROT_READ, MAP_SHARED, fd, 0);

	must(p != MAP_FAILED, "mmap");
	p = mremap(p, 32 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	must(p != MAP_FAILED, "mremap");
	for (long i = 0; i < 64; i++)
		sink = p[i * PAGE];
	saw("f", "read", "mmap", 0, 64 * PAGE, -1, -1);
	return 0;
}

static int map_sparse(void)
{
	int fd = make("f", 4096 * PAGE);
	char *p = mmap(NULL, 4096 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	must(p != MAP_FAILED, "mmap");
	for (long i = 0; i < 3; i++)
		sink = p[(1009 + i * 1013) * PAGE];
	saw("f", "read", "mmap", 1009 * PAGE, 1010 * PAGE, -1, -1);
	saw("f", "read", "mmap", 3035 * PAGE, 3036 * PAGE, -1, -1);
	fact("sparse", "f", "4194304"); /* not the 16 MiB of the mapping */
	return 0;
}

static char *given;

static int touch(void)
{
	for (long i = 0; i < 128; i++)
		sink = given[i * PAGE];
	saw("f", "read", "mmap", 0, 128 * PAGE, -1, -1);
	return 0;
}

static int map_fork(void)
{
	int fd = make("f", 128 * PAGE);

	given = mmap(NULL, 128 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	must(given != MAP_FAILED, "mmap");
	close(fd);
	child(touch); /* the parent touches no page */
	return 0;
}

/* Wait until the process that forked this one has ended and its state was cleaned up. */
static void orphaned(pid_t parent)
{
	while (getppid() == parent)
		usleep(1000);
	usleep(1200000);
}

static int grandchild(void)
{
	pid_t parent = getpid();
	int status = fork();

	must(status >= 0, "fork");
	if (status)
		return 0; /* it has touched no page */
	orphaned(parent);
	return touch();
}

static int mapper(void)
{
	pid_t parent = getpid(), pid;
	int fd = make("f", 128 * PAGE);

	given = mmap(NULL, 128 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	must(given != MAP_FAILED, "mmap");
	close(fd);
	pid = fork();
	must(pid >= 0, "fork");
	if (pid)
		return 0;
	orphaned(parent);
	return grandchild();
}

/* The mapping process and the one between have ended when the first page is touched. */
static int map_grandchild(void)
{
	int ends[2];
	char byte;

	must(!pipe(ends), "pipe");
	child(mapper);
	close(ends[1]);
	must(read(ends[0], &byte, 1) == 0, "read"); /* no process has the other end */
	return 0;
}

const struct workload map_cases[] = {
	{"map_read", map_read},
	{"map_part", map_part},
	{"map_write", map_write},
	{"map_write_few", map_write_few},
	{"map_read_into", map_read_into},
	{"map_private_write", map_private_write},
	{"map_remap", map_remap},
	{"map_sparse", map_sparse},
	{"map_fork", map_fork},
	{"map_grandchild", map_grandchild},
	{0},
};
