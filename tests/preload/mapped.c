// SPDX-License-Identifier: Apache-2.0
/* Programs that do something unusual with a mapping of 256 pages; each in a process of its own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096L
#define PAGES 256L
#define SIZE (PAGES * PAGE)

extern char **environ;
static volatile char sink;
static const char *name;
static int file;

static void must(int holds)
{
	if (!holds)
		abort();
}

static volatile char *map(int prot, int flags)
{
	char *p = mmap(NULL, SIZE, prot, flags, file, 0);

	must(p != MAP_FAILED);
	return p;
}

static void look(volatile char *p, long page)
{
	sink = p[page * PAGE + 5];
	must(sink == (char)page);
}

static void read_private(void)
{
	int again = open(name, O_RDONLY);
	volatile char *p = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, again, 0);

	close(again);
	look(p, 3);
	look(p, 101);
	look(p, 100);
}

static void read_only_shared(void)
{
	int again = open(name, O_RDONLY);
	volatile char *p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, again, 0);

	look(p, 3);
}

static void write_shared(void)
{
	volatile char *p = map(PROT_READ | PROT_WRITE, MAP_SHARED);

	p[7 * PAGE] = 1;
	look(p, 200);
}

static void write_private(void)
{
	map(PROT_READ | PROT_WRITE, MAP_PRIVATE)[7 * PAGE] = 1;
}

static void not_used(void)
{
	map(PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void unmapped(void)
{
	for (long i = 0; i < 3; i++) {
		volatile char *p = map(PROT_READ, MAP_SHARED);

		look(p, 10 * i);
		must(!munmap((void *)p, SIZE));
	}
}

static void made_writable(void)
{
	volatile char *p = map(PROT_READ, MAP_SHARED);

	look(p, 3);
	must(!mprotect((void *)p, SIZE, PROT_READ | PROT_WRITE));
	p[9 * PAGE] = 1;
}

static void executes(void)
{
	char *argv[] = {"true", NULL};

	look(map(PROT_READ, MAP_PRIVATE), 3);
	execve("/nowhere/true", argv, environ);
	execve("/bin/true", argv, environ);
	abort();
}

static void exec_fails(void)
{
	volatile char *p = map(PROT_READ, MAP_PRIVATE);
	char *argv[] = {"true", NULL};

	look(p, 3);
	must(execve("/nowhere/true", argv, environ) < 0);
	look(p, 9);
}

static void spawns(void)
{
	volatile char *p = map(PROT_READ, MAP_SHARED);
	char *argv[] = {"true", NULL};
	int status;
	pid_t pid;

	look(p, 3);
	must(!posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ));
	must(waitpid(pid, &status, 0) == pid && !status);
	look(p, 9);
}

/* The parent's descriptors and mappings are as they were; the child has its own. */
static void forks(void)
{
	volatile char *p = map(PROT_READ | PROT_WRITE, MAP_SHARED);
	int status;
	pid_t pid = fork();

	must(pid >= 0);
	if (!pid) {
		look(p, 40);
		must(open(name, O_RDONLY) == file + 1);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid && !status);
	p[9 * PAGE] = 1;
}

static void closes_all(void)
{
	volatile char *p = map(PROT_READ, MAP_SHARED);

	look(p, 3);
	must(!close_range(3, ~0U, 0));
	look(p, 9);
	must(open(name, O_RDWR) == 3);
	look(map(PROT_READ, MAP_SHARED), 11);
}

static void killed(void)
{
	look(map(PROT_READ, MAP_SHARED), 3);
	kill(getpid(), SIGKILL);
}

static void mapped_over(void)
{
	volatile char *p = map(PROT_READ, MAP_SHARED);
	volatile char *q = mmap((char *)p + 64 * PAGE, 64 * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	must(q == p + 64 * PAGE && !q[5]);
	q[5] = 2;
	look(p, 3);
	look(p, 130);
}

static void middle_unmapped(void)
{
	volatile char *p = map(PROT_READ, MAP_SHARED);

	look(p, 3);
	must(!munmap((char *)p + 64 * PAGE, 64 * PAGE));
	look(p, 130);
	must(!munmap((void *)p, SIZE));
}

static void moved(void)
{
	volatile char *p = mmap(NULL, SIZE / 2, PROT_READ, MAP_SHARED, file, 0);
	char *to = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	look(p, 3);
	p = mremap((void *)p, SIZE / 2, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	must(p == to);
	look(p, 3);
	look(p, 255);
}

static void dropped(void)
{
	volatile char *p = map(PROT_READ, MAP_SHARED);

	look(p, 3);
	must(!madvise((void *)p, SIZE, MADV_DONTNEED));
	look(p, 9);
}

static sigjmp_buf out;

static void on_bus(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

static void cut(void)
{
	volatile char *p = map(PROT_READ | PROT_WRITE, MAP_SHARED);

	signal(SIGBUS, on_bus);
	look(p, 3);
	must(!ftruncate(file, 128 * PAGE));
	look(p, 4);
	if (!sigsetjmp(out, 1)) {
		sink = p[200 * PAGE];
		abort();
	}
}

static void watches_itself(void)
{
	volatile char *p = map(PROT_READ | PROT_WRITE, MAP_SHARED);
	struct uffdio_api api = {.api = UFFD_API, .features = 1 << 15 /* asynchronous */};
	struct uffdio_register range = {.range = {(unsigned long)p, SIZE}, .mode = 2};
	long fd = syscall(SYS_userfaultfd, 1);

	must(fd == file + 1);
	must(!ioctl((int)fd, UFFDIO_API, &api) && !ioctl((int)fd, UFFDIO_REGISTER, &range));
	look(p, 3);
}

static void numbers(void)
{
	for (int i = 1; i < 60; i++) {
		look(map(PROT_READ, MAP_PRIVATE), i);
		must(open(name, O_RDONLY) == file + i);
	}
}

static void *maps_and_unmaps(void *arg)
{
	for (int i = 0; i < 100; i++) {
		volatile char *p = map(PROT_READ | PROT_WRITE, MAP_SHARED);

		look(p, 3);
		must(!munmap((void *)p, SIZE));
	}
	return arg;
}

static void *uses(void *arg)
{
	volatile char *p = arg;

	for (long i = 0; i < 20000; i++) {
		look(p, 20 + i % 10);
		p[(30 + i % 10) * PAGE] = 1;
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];
	volatile char *p = map(PROT_READ | PROT_WRITE, MAP_SHARED);

	for (int i = 0; i < 4; i++)
		must(!pthread_create(&t[i], NULL, i % 2 ? uses : maps_and_unmaps, (void *)p));
	for (int i = 0; i < 4; i++)
		must(!pthread_join(t[i], NULL));
}

static void make(void)
{
	static char block[SIZE];

	for (long i = 0; i < PAGES; i++)
		block[i * PAGE + 5] = (char)i;
	file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	must(write(file, block, SIZE) == SIZE);
}

#define CASE(f)                                                                                    \
	{                                                                                          \
#f, f                                                                              \
	}
static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	CASE(read_private),    CASE(read_only_shared),
	CASE(write_shared),    CASE(write_private),
	CASE(not_used),	       CASE(unmapped),
	CASE(made_writable),   CASE(executes),
	CASE(exec_fails),      CASE(spawns),
	CASE(forks),	       CASE(closes_all),
	CASE(killed),	       CASE(mapped_over),
	CASE(middle_unmapped), CASE(moved),
	CASE(dropped),	       CASE(cut),
	CASE(watches_itself),  CASE(numbers),
	CASE(threads),
};

/* Prints each case and how it ended. */
int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			name = cases[i].name;
			make();
			cases[i].run();
			exit(0);
		}
		must(waitpid(pid, &status, 0) == pid);
		dprintf(1, "%s %d\n", cases[i].name, status);
	}
	return 0;
}
