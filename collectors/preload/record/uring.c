// SPDX-License-Identifier: Apache-2.0
/*
 * io_uring: its rings are mapped here too, to read requests as they are submitted and answers when
 * they are there (uring_answers.c). Of rings that the kernel polls (SQPOLL) both are read at each
 * call on the ring, before a descriptor is closed, and at the end. Rings that lie in memory of the
 * program, or that came from another process are counted and not looked into.
 */
#include "handlers.h"
#include "uring.h"

#define SQE128 (1U << 10)
#define CQE32 (1U << 11)
#define NO_MMAP (1U << 14)
#define NO_SQARRAY (1U << 16)
#define NEWER (~((1U << 17) - 1)) /* flags that may change what the rings look like */
#define REGISTERED_RING (1U << 4)
#define DONTFORK 10
#define SPINS 2000
#define FREE (-1)
#define RING_HEAD offsetof(struct ring, sqes)

enum registering { FILES = 2, NO_FILES = 3, FILES_UPDATE = 6, FILES2 = 13, FILES_UPDATE2 = 14 };
enum { RING_FDS = 20, RESIZE = 33 };

static struct ring *ring_at(struct rec *rec, int fd)
{
	for (unsigned int i = 0; i < TH_RINGS; i++)
		if (rec->rings[i] && rec->rings[i]->fd == fd)
			return rec->rings[i];
	return NULL;
}

static void ring_let(struct ring *ring)
{
	__atomic_store_n(&ring->busy, 0, __ATOMIC_RELEASE);
}

/* Hold it where nobody does and it is still that of `fd`; `busy`: whether somebody does. */
static bool ring_try(struct ring *ring, int fd, bool *busy)
{
	*busy = __atomic_exchange_n(&ring->busy, 1, __ATOMIC_ACQUIRE);
	if (*busy)
		return false;
	if (ring->fd == fd)
		return true;
	ring_let(ring); /* closed meanwhile */
	return false;
}

static bool ring_hold(struct rec *rec, struct ring *ring, int fd)
{
	bool busy = true;

	for (unsigned int i = 0; i < SPINS && busy; i++) {
		if (ring_try(ring, fd, &busy))
			return true;
		__asm__ volatile("pause");
	}
	if (busy)
		lose(rec, TH_LOST_EXTENTS, 1);
	return false;
}

/* A free one, held; what it is in stays: another thread may look at it. */
static struct ring *ring_new(struct rec *rec)
{
	bool busy;

	for (unsigned int i = 0; i < TH_RINGS; i++) {
		struct ring *ring = rec->rings[i] ? rec->rings[i] : th_map(sizeof(*ring)),
			    *none = NULL;

		if (!ring)
			return NULL;
		if (!rec->rings[i]) {
			ring->fd = FREE;
			if (!__atomic_compare_exchange_n(&rec->rings[i], &none, ring, false,
							 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
				th_sys(__NR_munmap, ring, sizeof(*ring));
				ring = none;
			}
		}
		if (ring->fd == FREE && ring_try(ring, FREE, &busy))
			return ring;
	}
	return NULL;
}

/* Of one that is held, which is free then. */
static void unmap(struct ring *ring)
{
	for (unsigned int i = 0; i < 3; i++)
		if (ring->maps[i].at)
			th_sys(__NR_munmap, ring->maps[i].at, ring->maps[i].bytes);
	th_zero((char *)ring + RING_HEAD, sizeof(*ring) - RING_HEAD);
	ring->fd = FREE;
	ring_let(ring);
}

static char *map_part(struct ring *ring, unsigned int i, long fd, size_t bytes,
		      unsigned long long what)
{
	long at = th_sys(__NR_mmap, 0, bytes, 1 /* read */, 1 /* shared */, fd, what);

	if (th_failed(at))
		return NULL;
	ring->maps[i].at = (void *)at;
	ring->maps[i].bytes = bytes;
	th_sys(__NR_madvise, at, bytes, DONTFORK); /* a child must not keep the ring */
	return (char *)at;
}

static bool map_ring(struct ring *ring, long fd, const struct io_uring_params *p)
{
	unsigned int wide = p->flags & CQE32 ? 32 : 16;
	char *sq = map_part(ring, 0, fd, p->sq_off.array + p->sq_entries * 4UL, IORING_OFF_SQ_RING);
	char *cq = map_part(ring, 1, fd, p->cq_off.cqes + (size_t)p->cq_entries * wide,
			    IORING_OFF_CQ_RING);
	char *sqes =
		map_part(ring, 2, fd, p->sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);

	if (!sq || !cq || !sqes)
		return false;
	ring->sqes = (const struct io_uring_sqe *)sqes;
	ring->sq_head = (const unsigned int *)(sq + p->sq_off.head);
	ring->sq_tail = (const unsigned int *)(sq + p->sq_off.tail);
	ring->sq_array = p->flags & NO_SQARRAY ? NULL : (unsigned int *)(sq + p->sq_off.array);
	ring->cq_tail = (const unsigned int *)(cq + p->cq_off.tail);
	ring->cqes = cq + p->cq_off.cqes;
	ring->sq_mask = p->sq_entries - 1;
	ring->cq_entries = p->cq_entries;
	ring->cqe_size = wide;
	return true;
}

void do_uring_setup(struct rec *rec, const struct th_call *c)
{
	const struct io_uring_params *p = (const struct io_uring_params *)c->arg[1];
	struct ring *ring = NULL;

	if (th_failed(c->ret))
		return;
	uring_closed(rec, (int)c->ret); /* by a call that was not seen */
	if (!th_vforked() && !(p->flags & (SQE128 | NO_MMAP | NEWER)))
		ring = ring_new(rec);
	if (ring && map_ring(ring, c->ret, p)) {
		ring->polled = p->flags & IORING_SETUP_SQPOLL;
		rec->rings_polled |= ring->polled;
		ring->fd = (int)c->ret;
		if (rec->top <= (unsigned int)ring->fd)
			rec->top = (unsigned int)ring->fd + 1;
		ring_let(ring);
		return;
	}
	if (ring)
		unmap(ring);
	rec->rings_unseen = 1;
	count_unknown(rec, c);
}

/* The ring that a call is about; NULL where it is not looked into, which is counted once. */
static struct ring *ring_of(struct rec *rec, const struct th_call *c, unsigned long flags)
{
	struct ring *ring = flags & REGISTERED_RING ? NULL : ring_at(rec, (int)c->arg[0]);

	if (ring)
		return ring;
	if (!rec->rings_unseen)
		count_unknown(rec, c);
	rec->rings_unseen = 1;
	return NULL;
}

void before_uring_enter(struct rec *rec, struct th_call *c)
{
	struct ring *ring =
		c->arg[1] || rec->rings_polled ? ring_of(rec, c, (unsigned long)c->arg[3]) : NULL;

	if (!ring || !ring_hold(rec, ring, (int)c->arg[0]))
		return;
	if (ring->polled)
		uring_note_polled(rec, ring);
	else
		uring_note(rec, ring, (unsigned int)c->arg[1]);
	ring_let(ring);
}

void do_uring_enter(struct rec *rec, const struct th_call *c)
{
	struct ring *ring = c->arg[3] & REGISTERED_RING ? NULL : ring_at(rec, (int)c->arg[0]);

	if (!ring || !ring_hold(rec, ring, (int)c->arg[0]))
		return;
	if (c->arg[1] && !ring->polled)
		uring_unsubmitted(ring);
	uring_answers(rec, ring);
	ring_let(ring);
}

static void set_files(struct rec *rec, struct ring *ring, unsigned int from, const int *fds,
		      unsigned int n)
{
	for (unsigned int i = 0; fds && i < n && from + i < URING_FILES; i++) {
		struct slot *slot = fds[i] >= 0 ? slot_use(rec, fds[i]) : NULL;

		if (fds[i] == -2) /* IORING_REGISTER_FILES_SKIP */
			continue;
		ring->files[from + i] =
			slot && slot->kind == SLOT_FILE
				? episode_share(rec, slot, fds[i], (unsigned long)ring)
				: NULL;
	}
}

/* Structures of <linux/io_uring.h>: rsrc_register, rsrc_update, rsrc_update2. */
void do_uring_register(struct rec *rec, const struct th_call *c)
{
	struct ring *ring = th_failed(c->ret) ? NULL : ring_of(rec, c, 0);
	const unsigned int *words = (const unsigned int *)c->arg[2];
	unsigned int n = (unsigned int)c->arg[3];

	if (!ring)
		return;
	switch (c->arg[1]) {
	case FILES:
		set_files(rec, ring, 0, (const int *)words, n);
		break;
	case FILES2:
		set_files(rec, ring, 0, (const int *)((const unsigned long *)words)[2], words[0]);
		break;
	case FILES_UPDATE:
		set_files(rec, ring, words[0], (const int *)((const unsigned long *)words)[1], n);
		break;
	case FILES_UPDATE2:
		set_files(rec, ring, words[0], (const int *)((const unsigned long *)words)[1],
			  words[6]);
		break;
	case NO_FILES:
		th_zero(ring->files, sizeof(ring->files));
		break;
	case RING_FDS:
	case RESIZE:
		count_unknown(rec, c);
		rec->rings_unseen = 1;
		uring_closed(rec, ring->fd);
		break;
	}
}

/* What rings that are polled have by now: their requests name descriptors, and one is closed. */
static void look_at_polled(struct rec *rec)
{
	for (unsigned int i = 0; i < TH_RINGS; i++) {
		struct ring *ring = rec->rings[i];

		if (!ring || !ring->polled || !ring_hold(rec, ring, ring->fd))
			continue;
		uring_note_polled(rec, ring);
		uring_answers(rec, ring);
		ring_let(ring);
	}
}

/* Before its descriptor is closed: what has been answered by now. Our mapping would keep the ring. */
void uring_closed(struct rec *rec, int fd)
{
	struct ring *ring = ring_at(rec, fd);

	if (rec->rings_polled)
		look_at_polled(rec);
	if (!ring || !ring_hold(rec, ring, fd))
		return;
	uring_answers(rec, ring);
	unmap(ring);
}

/* The program ends. */
void uring_settle(struct rec *rec)
{
	for (unsigned int i = 0; i < TH_RINGS; i++) {
		struct ring *ring = rec->rings[i];

		if (!ring || ring->fd == FREE || !ring_hold(rec, ring, ring->fd))
			continue;
		if (ring->polled)
			uring_note_polled(rec, ring);
		uring_answers(rec, ring);
		ring_let(ring);
	}
}
