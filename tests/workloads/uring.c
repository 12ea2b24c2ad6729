// SPDX-License-Identifier: Apache-2.0
/* io_uring in its modes, by the bare system calls. */
#include "workload.h"
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/uio.h>

struct ring {
	int fd;
	unsigned int flags;
	unsigned int *sq_tail, *sq_mask, *sq_array, *sq_flags;
	unsigned int *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static char buffers[16][65536];

static int ring_open(struct ring *r, unsigned int flags)
{
	struct io_uring_params p = {.flags = flags, .sq_thread_idle = 50};
	char *sq, *cq;

	r->flags = flags;
	r->fd = (int)syscall(SYS_io_uring_setup, 16, &p);
	if (r->fd < 0)
		return -1;
	sq = mmap(NULL, p.sq_off.array + 16 * 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		  r->fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_CQ_RING);
	r->sqes = mmap(NULL, 16 * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
	must(sq != MAP_FAILED && cq != MAP_FAILED && (void *)r->sqes != MAP_FAILED,
	     "mmap of the ring");
	r->sq_tail = (unsigned int *)(sq + p.sq_off.tail);
	r->sq_mask = (unsigned int *)(sq + p.sq_off.ring_mask);
	r->sq_array = (unsigned int *)(sq + p.sq_off.array);
	r->sq_flags = (unsigned int *)(sq + p.sq_off.flags);
	r->cq_head = (unsigned int *)(cq + p.cq_off.head);
	r->cq_tail = (unsigned int *)(cq + p.cq_off.tail);
	r->cq_mask = (unsigned int *)(cq + p.cq_off.ring_mask);
	r->cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
	return 0;
}

static void put(struct ring *r, int op, int fd, void *at, unsigned int len, long offset, int flags)
{
	unsigned int tail = *r->sq_tail, i = tail & *r->sq_mask;
	struct io_uring_sqe *sqe = &r->sqes[i];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = (unsigned char)op;
	sqe->fd = fd;
	sqe->addr = (unsigned long)at;
	sqe->len = len;
	sqe->off = (unsigned long)offset;
	sqe->flags = (unsigned char)flags;
	r->sq_array[i] = i;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

/* Submit what was put and wait for `n` completions, each of `bytes`. */
static void go(struct ring *r, unsigned int n, int bytes)
{
	unsigned int flags = IORING_ENTER_GETEVENTS, done = 0;

	if (r->flags & IORING_SETUP_SQPOLL) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (*r->sq_flags & IORING_SQ_NEED_WAKEUP)
			flags |= IORING_ENTER_SQ_WAKEUP;
	}
	must(syscall(SYS_io_uring_enter, r->fd, n, n, flags, NULL, 0) >= 0, "io_uring_enter");
	while (done < n) {
		unsigned int head = *r->cq_head;

		if (head == __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE)) {
			syscall(SYS_io_uring_enter, r->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
			continue;
		}
		errno = -r->cqes[head & *r->cq_mask].res;
		must(r->cqes[head & *r->cq_mask].res == bytes, "completion");
		__atomic_store_n(r->cq_head, head + 1, __ATOMIC_RELEASE);
		done++;
	}
}

/* 7 reads and 5 writes at scattered places, with the given flags on each request. */
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
	close(fd); /* the ring keeps the file */
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
	put(&r, IORING_OP_WRITE, fd, buffers[0], 211, -1, 0); /* at the file position */
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
