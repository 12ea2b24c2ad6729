// SPDX-License-Identifier: Apache-2.0
/* More records than a small ring holds; tests/test_ebpf_losses.py passes the arguments. */
#include "workload.h"

static char buffer[4096];

/* `n` reads of 4 KiB at scattered offsets of a file of `pages` pages; no two in a row merge. */
int loss_random(long n, long pages)
{
	unsigned long at = 1;
	int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644);

	must(fd >= 0 && !ftruncate(fd, pages * 4096), "f");
	for (long i = 0; i < n; i++) {
		at = at * 6364136223846793005UL + 1442695040888963407UL;
		must(pread(fd, buffer, 4096, (long)((at >> 33) % (unsigned long)pages) * 4096) ==
			     4096,
		     "pread");
	}
	return 0;
}

/* `n` processes, each of which writes its own file. */
int loss_processes(long n)
{
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		must(pid >= 0, "fork");
		if (!pid) {
			char name[32];
			int fd;

			snprintf(name, sizeof(name), "p%ld", i);
			fd = open(name, O_WRONLY | O_CREAT, 0644);
			_exit(write(fd, buffer, 101) == 101 ? 0 : 1);
		}
		if (i % 50 == 49)
			while (waitpid(-1, NULL, 0) > 0)
				;
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	return 0;
}

/* `n` files created, written and closed by one process. */
int loss_files(long n)
{
	for (long i = 0; i < n; i++) {
		char name[32];
		int fd;

		snprintf(name, sizeof(name), "n%ld", i);
		fd = open(name, O_WRONLY | O_CREAT, 0644);
		must(fd >= 0 && write(fd, buffer, 101) == 101 && !close(fd), name);
	}
	return 0;
}

/* Writes forever, in pieces that do not merge, until it is killed. */
int loss_forever(void)
{
	int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (long i = 0;; i++) {
		must(pwrite(fd, buffer, 101, (i % 1009) * 8192 + i % 7) == 101, "pwrite");
		if (i % 101 == 0)
			usleep(1000);
	}
}
