// SPDX-License-Identifier: Apache-2.0
/* io_uring beyond plain reads and writes. `unfollowed`: must be counted as a loss. */
#include "../workloads/ring.h"
#include <sys/stat.h>

static char buffer[1 << 16];

static struct io_uring_sqe *last_put(struct ring *r)
{
	return &r->sqes[(*r->sq_tail - 1) & *r->sq_mask];
}

/* Return the result of the newest completion, successful or not. */
static int result(struct ring *r)
{
	unsigned int head = *r->cq_head;

	must(syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0,
	     "io_uring_enter");
	*r->cq_head = head + 1;
	return r->cqes[head & *r->cq_mask].res;
}

static int ring_opens(struct ring *r, const char *path, int flags)
{
	int fd;

	put(r, IORING_OP_OPENAT, AT_FDCWD, (void *)path, 0644, 0, 0);
	last_put(r)->open_flags = (unsigned int)flags;
	fd = result(r);
	must(fd >= 0, path);
	return fd;
}

/* Opened, truncated and closed by requests; written by system calls. */
static int rings_open(void)
{
	struct ring r;
	int fd;

	if (ring_open(&r, 0))
		return SKIPPED;
	close(make("f", 3001));
	fd = ring_opens(&r, "f", O_RDWR | O_TRUNC);
	saw("f", "truncate", "open", 0, 0, 0, 1);
	must(write(fd, buffer, 1009) == 1009, "write");
	saw("f", "write", "write", 0, 1009, 1009, 1);
	put(&r, IORING_OP_CLOSE, fd, NULL, 0, 0, 0);
	go(&r, 1, 0);
	fd = ring_opens(&r, "g", O_RDWR | O_CREAT);
	must(write(fd, buffer, 503) == 503, "write");
	saw("g", "write", "write", 0, 503, 503, 1);
	fact("created", "g", NULL);
	return 0;
}

static int rings_names(void)
{
	struct ring r;

	if (ring_open(&r, 0))
		return SKIPPED;
	close(make("f", 101));
	put(&r, IORING_OP_RENAMEAT, AT_FDCWD, (void *)"f", (unsigned int)AT_FDCWD, (long)"g", 0);
	go(&r, 1, 0);
	fact("unfollowed", "f", NULL);
	put(&r, IORING_OP_UNLINKAT, AT_FDCWD, (void *)"g", 0, 0, 0);
	go(&r, 1, 0);
	fact("unfollowed", "f", NULL);
	return 0;
}

static int rings_space(void)
{
	struct ring r;
	int fd;

	if (ring_open(&r, 0))
		return SKIPPED;
	fd = make("f", 8192);
	put(&r, IORING_OP_FALLOCATE, fd, (void *)4096L, 3, 0, 0); /* a hole */
	go(&r, 1, 0);
	fact("unfollowed", "f", NULL);
	return 0;
}

static int rings_splice(void)
{
	int p[2], fd = make("f", 8192);
	struct ring r;

	must(!pipe(p), "pipe");
	if (ring_open(&r, 0))
		return SKIPPED;
	put(&r, IORING_OP_SPLICE, p[1], NULL, 4001, -1, 0);
	last_put(&r)->splice_fd_in = fd;
	last_put(&r)->splice_off_in = 101;
	go(&r, 1, 4001);
	fact("unfollowed", "f", NULL);
	return 0;
}

/* O_APPEND, and the shared file offset. */
static int rings_positions(void)
{
	struct ring r;
	int fd;

	if (ring_open(&r, 0))
		return SKIPPED;
	close(make("f", 1013));
	fd = open("f", O_RDWR | O_APPEND);
	put(&r, IORING_OP_WRITE, fd, buffer, 211, 7, 0);
	go(&r, 1, 211);
	saw("f", "write", "io_uring", 1013, 1224, 211, 1);
	lseek(fd, 17, SEEK_SET);
	put(&r, IORING_OP_READ, fd, buffer, 101, -1, 0);
	go(&r, 1, 101);
	saw("f", "read", "io_uring", 17, 118, 101, 1);
	return 0;
}

const struct workload ring_cases[] = {
	{"rings_open", rings_open},	      {"rings_names", rings_names},
	{"rings_space", rings_space},	      {"rings_splice", rings_splice},
	{"rings_positions", rings_positions}, {0},
};
