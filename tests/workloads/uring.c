// SPDX-License-Identifier: Apache-2.0
/* io_uring in its modes, by raw system calls. */
#include "ring.h"
#include <sys/uio.h>

static char buffers[16][65536];

/* 7 reads and 5 writes at scattered offsets, with the given flags on each request. */
static int scattered(unsigned int setup, int flags)
{
	struct ring r;
	int fd = make("f", 200003);

	if (ring_open(&r, setup))
		return SKIPPED;
	for (int i = 0; i < 7; i++)
		put(&r, IORING_OP_READ, fd, buffers[i], 1009, i * 20011, flags);
	go(&r, 7, 1009);
	for (int i = 0; i < 7; i++)
		saw("f", "read", "io_uring", i * 20011, i * 20011 + 1009, 1009, 1);
	for (int i = 0; i < 5; i++)
		put(&r, IORING_OP_WRITE, fd, buffers[i], 503, i * 30011 + 5003, flags);
	go(&r, 5, 503);
	for (int i = 0; i < 5; i++)
		saw("f", "write", "io_uring", i * 30011 + 5003, i * 30011 + 5506, 503, 1);
	return 0;
}

static int uring_plain(void)
{
	return scattered(0, 0);
}

static int uring_async(void)
{
	return scattered(0, IOSQE_ASYNC);
}

static int uring_sqpoll(void)
{
	return scattered(IORING_SETUP_SQPOLL, 0);
}

static int uring_linked(void)
{
	struct ring r;
	int fd = make("f", 10007);

	if (ring_open(&r, 0))
		return SKIPPED;
	put(&r, IORING_OP_READ, fd, buffers[0], 101, 0, IOSQE_IO_LINK);
	put(&r, IORING_OP_WRITE, fd, buffers[0], 101, 5003, IOSQE_IO_LINK);
	put(&r, IORING_OP_READ, fd, buffers[1], 101, 7001, 0);
	go(&r, 3, 101);
	saw("f", "read", "io_uring", 0, 101, 101, 1);
	saw("f", "write", "io_uring", 5003, 5104, 101, 1);
	saw("f", "read", "io_uring", 7001, 7102, 101, 1);
	return 0;
}

static int uring_fixed(void)
{
	struct ring r;
	struct iovec v = {buffers[0], sizeof(buffers[0])};
	int fd = make("f", 50021);

	if (ring_open(&r, 0) ||
	    syscall(SYS_io_uring_register, r.fd, IORING_REGISTER_FILES, &fd, 1) ||
	    syscall(SYS_io_uring_register, r.fd, IORING_REGISTER_BUFFERS, &v, 1))
		return SKIPPED;
	close(fd); /* the ring keeps the file open */
	put(&r, IORING_OP_READ_FIXED, 0, buffers[0], 4001, 3001, IOSQE_FIXED_FILE);
	go(&r, 1, 4001);
	saw("f", "read", "io_uring", 3001, 7002, 4001, 1);
	put(&r, IORING_OP_WRITE_FIXED, 0, buffers[0], 2003, 40009, IOSQE_FIXED_FILE);
	go(&r, 1, 2003);
	saw("f", "write", "io_uring", 40009, 42012, 2003, 1);
	return 0;
}

static int uring_vectors(void)
{
	struct ring r;
	struct iovec v[2] = {{buffers[0], 307}, {buffers[1], 401}};
	int fd = make("f", 50021);

	if (ring_open(&r, 0))
		return SKIPPED;
	put(&r, IORING_OP_READV, fd, v, 2, 1009, 0);
	go(&r, 1, 708);
	saw("f", "read", "io_uring", 1009, 1717, 708, 1);
	lseek(fd, 20011, SEEK_SET);
	put(&r, IORING_OP_WRITE, fd, buffers[0], 211, -1, 0); /* at the file offset */
	go(&r, 1, 211);
	saw("f", "write", "io_uring", 20011, 20222, 211, 1);
	return 0;
}

const struct workload uring_cases[] = {
	{"uring_plain", uring_plain},
	{"uring_async", uring_async},
	{"uring_sqpoll", uring_sqpoll},
	{"uring_linked", uring_linked},
	{"uring_fixed", uring_fixed},
	{"uring_vectors", uring_vectors},
	{0},
};
