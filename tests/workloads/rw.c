// SPDX-License-Identifier: Apache-2.0
/* Reading and writing by the plain system calls. */
#include "workload.h"
#include <sys/uio.h>

static char buffer[1 << 20];

static int rw_sequential(void)
{
	int fd = make("f", 0), n = 0;
	long size = 0;

	for (int i = 0; i < 101; i++)
		must(write(fd, buffer, 997) == 997, "write");
	saw("f", "write", "write", 0, 101 * 997, 101 * 997, 101);
	lseek(fd, 0, SEEK_SET);
	for (ssize_t got; (got = read(fd, buffer, 1009)) > 0; n++)
		size += got;
	saw("f", "read", "read", 0, size, size, n);
	close(fd);
	return 0;
}

static int rw_positions(void)
{
	int fd = make("f", 100003);

	for (int i = 0; i < 13; i++)
		must(pread(fd, buffer, 211, i * 7001) == 211, "pread");
	for (int i = 0; i < 13; i++)
		saw("f", "read", "read", i * 7001, i * 7001 + 211, 211, 1);
	for (int i = 0; i < 11; i++)
		must(pwrite(fd, buffer, 307, 90001 - i * 8009) == 307, "pwrite");
	for (int i = 0; i < 11; i++)
		saw("f", "write", "write", 90001 - i * 8009, 90001 - i * 8009 + 307, 307, 1);
	return 0;
}

static int rw_vectors(void)
{
	struct iovec v[3] = {{buffer, 101}, {buffer + 200, 103}, {buffer + 400, 107}};
	int fd = make("f", 50021);

	lseek(fd, 17, SEEK_SET);
	must(readv(fd, v, 3) == 311, "readv");
	saw("f", "read", "read", 17, 328, 311, 1);
	must(writev(fd, v, 3) == 311, "writev");
	saw("f", "write", "write", 328, 639, 311, 1);
	must(preadv(fd, v, 3, 1009) == 311, "preadv");
	saw("f", "read", "read", 1009, 1320, 311, 1);
	must(pwritev(fd, v, 3, 2003) == 311, "pwritev");
	saw("f", "write", "write", 2003, 2314, 311, 1);
	must(preadv2(fd, v, 3, 3001, 0) == 311, "preadv2");
	saw("f", "read", "read", 3001, 3312, 311, 1);
	must(pwritev2(fd, v, 3, 4001, 0) == 311, "pwritev2");
	saw("f", "write", "write", 4001, 4312, 311, 1);
	must(preadv2(fd, v, 3, -1, 0) == 311, "preadv2 at the file position");
	saw("f", "read", "read", 639, 950, 311, 1);
	return 0;
}

static int rw_append(void)
{
	int fd, keep = make("f", 1013);

	close(keep);
	fd = open("f", O_WRONLY | O_APPEND);
	for (int i = 0; i < 7; i++)
		must(write(fd, buffer, 113) == 113, "append");
	saw("f", "write", "write", 1013, 1013 + 7 * 113, 7 * 113, 7);
	return 0;
}

static int append_13(void)
{
	int fd = open("f", O_WRONLY | O_APPEND | O_CREAT, 0644);

	for (int i = 0; i < 13; i++)
		must(write(fd, buffer, 509) == 509, "append");
	return 0;
}

static int rw_append_processes(void)
{
	int fd = make("f", 0);
	long at = 0;

	close(fd);
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		int status;

		if (!pid)
			_exit(append_13());
		waitpid(pid, &status, 0);
		saw_by(pid, "f", "write", "write", at, at + 13 * 509, 13 * 509, 13);
		at += 13 * 509;
	}
	return 0;
}

static int rw_direct(void)
{
	int fd = make("f", 1 << 20);
	void *aligned = NULL;

	close(fd);
	fd = open("f", O_RDWR | O_DIRECT);
	if (fd < 0)
		return SKIPPED;
	must(!posix_memalign(&aligned, 4096, 65536), "posix_memalign");
	memset(aligned, 7, 65536);
	for (int i = 0; i < 5; i++)
		must(pread(fd, aligned, 8192, i * 65536) == 8192, "pread O_DIRECT");
	for (int i = 0; i < 5; i++)
		saw("f", "read", "read", i * 65536, i * 65536 + 8192, 8192, 1);
	for (int i = 0; i < 3; i++)
		must(write(fd, aligned, 65536) == 65536, "write O_DIRECT");
	saw("f", "write", "write", 0, 3 * 65536, 3 * 65536, 3);
	return 0;
}

static int rw_small(void)
{
	int fd = make("f", 5003);

	lseek(fd, 0, SEEK_SET);
	for (int i = 0; i < 4999; i++)
		must(read(fd, buffer, 1) == 1, "read");
	saw("f", "read", "read", 0, 4999, 4999, 4999);
	return 0;
}

static int rw_stride(void)
{
	int fd = make("f", 1 << 20);

	for (int i = 0; i < 127; i++)
		must(pread(fd, buffer, 1024, i * 8192) == 1024, "pread");
	for (int i = 0; i < 127; i++)
		saw("f", "read", "read", i * 8192, i * 8192 + 1024, 1024, 1);
	return 0;
}

static int rw_failed(void)
{
	int fd = open("f", O_RDONLY | O_CREAT, 0644);

	must(fd >= 0 && read(fd, buffer, 10) == 0 && write(fd, buffer, 10) < 0, "failing calls");
	must(open("missing/x", O_RDONLY) < 0, "open of nothing");
	fact("created", "f", NULL);
	return 0;
}

const struct workload rw_cases[] = {
	{"rw_sequential", rw_sequential},
	{"rw_positions", rw_positions},
	{"rw_vectors", rw_vectors},
	{"rw_append", rw_append},
	{"rw_append_processes", rw_append_processes},
	{"rw_direct", rw_direct},
	{"rw_small", rw_small},
	{"rw_stride", rw_stride},
	{"rw_failed", rw_failed},
	{0},
};
