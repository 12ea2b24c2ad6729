/* SPDX-License-Identifier: Apache-2.0 */
/* An io_uring ring by raw system calls. */
#ifndef RING_H
#define RING_H

#include "workload.h"
#include <linux/io_uring.h>
#include <sys/mman.h>

struct ring {
	int fd;
	unsigned int flags;
	unsigned int *sq_tail, *sq_mask, *sq_array, *sq_flags;
	unsigned int *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static inline int ring_open(struct ring *r, unsigned int flags)
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

static inline void put(struct ring *r, int op, int fd, void *at, unsigned int len, long offset,
		       int flags)
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
	sqe->user_data = tail; /* distinct, as in programs that match completions to requests */
	r->sq_array[i] = i;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

/* Submit the queued requests and wait for `n` completions, each of `bytes`. */
static inline void go(struct ring *r, unsigned int n, int bytes)
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

#endif
