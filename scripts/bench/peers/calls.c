// SPDX-License-Identifier: Apache-2.0
/* calls KIND COUNT: CPU nanoseconds per call, on stderr. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char buffer[4096];

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int processes(long n)
{
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid) {
			execl("/proc/self/exe", "calls", "files", "20", NULL);
			_exit(97);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	long n = argc == 3 ? atol(argv[2]) : 0;
	const char *kind = argc == 3 ? argv[1] : "";
	unsigned long at = 1;
	double begin;
	int fd = -1;

	if (!strcmp(kind, "processes"))
		return processes(n);
	if (strcmp(kind, "files") && strcmp(kind, "getppid"))
		fd = open("data", O_RDWR);
	begin = cpu();
	for (long i = 0; i < n; i++) {
		if (!strcmp(kind, "getppid")) {
			syscall(SYS_getppid);
		} else if (!strcmp(kind, "read")) {
			if (read(fd, buffer, 1) != 1)
				return 1;
		} else if (!strcmp(kind, "write")) {
			if (write(fd, buffer, 1) != 1)
				return 1;
		} else if (!strcmp(kind, "random")) {
			at = at * 6364136223846793005UL + 1442695040888963407UL;
			if (pread(fd, buffer, 4096, (long)((at >> 33) % 100003) * 4096) != 4096)
				return 1;
		} else if (!strcmp(kind, "open")) {
			close(open("data", O_RDONLY));
		} else if (!strcmp(kind, "files")) {
			char name[32];
			int file;

			snprintf(name, sizeof(name), "small%ld", i);
			file = open(name, O_RDWR | O_CREAT, 0644);
			if (write(file, buffer, 4096) != 4096 || lseek(file, 0, SEEK_SET) ||
			    read(file, buffer, 4096) != 4096)
				return 1;
			close(file);
		}
	}
	if (strcmp(kind, "files"))
		fprintf(stderr, "%.1f\n", (cpu() - begin) / (double)n);
	return 0;
}
