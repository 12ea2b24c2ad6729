// SPDX-License-Identifier: Apache-2.0
/*
 * Requests are noted before the call that submits them, and recorded when their answer is found in
 * the ring, with the bytes that it tells: nothing is recorded that was only asked for. Answers
 * have their request's tag, which programs need not make different: where an answer may be that of
 * several requests, its place is marked inexact.
 */
#include "uring.h"

#define SKIP_SUCCESS (1U << 6) /* IOSQE_CQE_SKIP_SUCCESS: Linux 5.17 */
#define HERE (~0ULL)	       /* offset: the file position */

/* enum io_uring_op; headers may be older than the kernel */
static const struct {
	unsigned char code, kind, op, vectors;
} known[] = {
	{1, REQUEST_MOVES, TH_READ, 1},
	{2, REQUEST_MOVES, TH_WRITE, 1},
	{4, REQUEST_MOVES, TH_READ, 0},
	{5, REQUEST_MOVES, TH_WRITE, 0},
	{22, REQUEST_MOVES, TH_READ, 0},
	{23, REQUEST_MOVES, TH_WRITE, 0},
	{60, REQUEST_MOVES, TH_READ, 1},
	{61, REQUEST_MOVES, TH_WRITE, 1},
	{17, REQUEST_COUNTED, 0, 0} /* fallocate */,
	{18, REQUEST_COUNTED, 0, 0} /* openat */,
	{28, REQUEST_COUNTED, 0, 0} /* openat2 */,
	{30, REQUEST_COUNTED, 0, 0} /* splice */,
	{33, REQUEST_COUNTED, 0, 0} /* tee */,
	{35, REQUEST_COUNTED, 0, 0} /* renameat */,
	{36, REQUEST_COUNTED, 0, 0} /* unlinkat */,
	{37, REQUEST_COUNTED, 0, 0} /* mkdirat */,
	{38, REQUEST_COUNTED, 0, 0} /* symlinkat */,
	{39, REQUEST_COUNTED, 0, 0} /* linkat */,
	{49, REQUEST_COUNTED, 0, 0} /* reads again and again */,
	{55, REQUEST_COUNTED, 0, 0} /* ftruncate */,
};

static unsigned short *same_tags(struct ring *ring, unsigned long long tag)
{
	return &ring->tags[(tag * 0x9e3779b97f4a7c15ULL) >> 56];
}

static struct request *request_at(struct ring *ring, unsigned int place)
{
	return &ring->requests[place % URING_REQUESTS];
}

void count_request(struct rec *rec, unsigned int code)
{
	rec->page->proc.unknown_call = TH_UNKNOWN_URING + code;
	lose(rec, TH_LOST_UNKNOWN_CALL, 1);
}

static void forget(struct ring *ring, struct request *r)
{
	--*same_tags(ring, r->tag);
	ring->waiting--;
	r->kind = REQUEST_NONE;
}

/* Which file it is about; false where that is none of interest. */
static bool find_file(struct rec *rec, struct ring *ring, const struct io_uring_sqe *sqe,
		      struct request *r)
{
	if (sqe->flags & IOSQE_FIXED_FILE) {
		r->fd = -1;
		r->ep = (unsigned int)sqe->fd < URING_FILES ? ring->files[sqe->fd] : NULL;
		return r->ep;
	}
	struct slot *slot = slot_use(rec, sqe->fd);

	r->fd = sqe->fd;
	if (!slot || (slot->kind != SLOT_FILE && slot->kind != SLOT_PIPE))
		return false;
	slot->writes |= r->op == TH_WRITE;
	r->append = slot->append && r->op == TH_WRITE;
	r->ep = slot->kind == SLOT_FILE ? episode_share(rec, slot, sqe->fd, (unsigned long)ring)
					: NULL;
	return r->ep || slot->kind == SLOT_PIPE;
}

static void note(struct rec *rec, struct ring *ring, const struct io_uring_sqe *sqe,
		 struct request *r)
{
	*r = (struct request){.tag = sqe->user_data,
			      .start = sqe->off,
			      .kind = REQUEST_OTHER,
			      .code = sqe->opcode};
	for (unsigned int i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (known[i].code != sqe->opcode)
			continue;
		r->kind = known[i].kind;
		r->op = known[i].op;
		r->len = known[i].vectors ? 0 : sqe->len;
	}
	if (r->kind == REQUEST_MOVES && !find_file(rec, ring, sqe, r))
		r->kind = r->fd < 0 ? REQUEST_COUNTED : REQUEST_OTHER;
	++*same_tags(ring, r->tag);
	ring->waiting++;
	if ((sqe->flags & SKIP_SUCCESS) && r->kind > REQUEST_OTHER) {
		count_request(rec, r->code); /* it may have no answer */
		forget(ring, r);
	}
}

/* At most `most` requests that the program has put into the ring. */
void uring_note(struct rec *rec, struct ring *ring, unsigned int most)
{
	unsigned int end = __atomic_load_n(ring->sq_tail, __ATOMIC_ACQUIRE);

	for (; ring->noted != end && most; ring->noted++, most--) {
		struct request *r = request_at(ring, ring->noted);
		unsigned int at = ring->noted & ring->sq_mask;

		if (r->kind) { /* too many without an answer */
			lose(rec, TH_LOST_EXTENTS, r->kind > REQUEST_OTHER);
			forget(ring, r);
			ring->first++;
		}
		if (ring->sq_array)
			at = ring->sq_array[at];
		if (at <= ring->sq_mask)
			note(rec, ring, &ring->sqes[at], r);
	}
}

/*
 * All since the last time of a ring that the kernel polls. They lie where they lay until the
 * program has gone around the ring: what was overwritten by then is counted.
 */
void uring_note_polled(struct rec *rec, struct ring *ring)
{
	unsigned int end = __atomic_load_n(ring->sq_tail, __ATOMIC_ACQUIRE);
	unsigned int room = ring->sq_mask + 1, missed = end - ring->noted;

	if (missed > room) { /* nor is it known any more whose answers are to come */
		lose(rec, TH_LOST_EXTENTS, missed - room + ring->waiting);
		th_zero(ring->requests, sizeof(ring->requests));
		th_zero(ring->tags, sizeof(ring->tags));
		ring->waiting = 0;
		ring->first = ring->noted = end - room;
		ring->missed = true;
	}
	uring_note(rec, ring, room);
}

/* Those that the kernel did not take: they are submitted again, or changed. */
void uring_unsubmitted(struct ring *ring)
{
	unsigned int taken = __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE);

	while ((int)(ring->noted - taken) > 0) {
		struct request *r = request_at(ring, --ring->noted);

		if (r->kind)
			forget(ring, r);
	}
}

/* The request that an answer is for; `alone`: it can be no other. */
static struct request *answered(struct ring *ring, unsigned long long tag, int res, bool *alone)
{
	struct request *first = NULL, *fits = NULL;
	unsigned int n = 0;

	for (unsigned int at = ring->first; at != ring->noted; at++) {
		struct request *r = request_at(ring, at);

		if (!r->kind || r->tag != tag)
			continue;
		n++;
		first = first ? first : r;
		fits = fits || r->len != (unsigned int)res ? fits : r;
		if (*same_tags(ring, tag) == 1 || (fits && n > 1))
			break;
	}
	*alone = n == 1;
	return fits ? fits : first;
}

static void moved_by(struct rec *rec, struct ring *ring, const struct request *r, unsigned int n,
		     bool exact)
{
	unsigned long long start = r->start, size;

	exact &= !(r->append || start == HERE) || !ring->waiting;
	unsigned int op_how = TH_OP((unsigned int)r->op, TH_HOW_URING, !exact);

	if (!r->ep) {
		moved(rec, r->fd, op_how, 0, n);
		return;
	}
	if (r->append && size_of(r->fd, &size)) {
		start = size - n;
	} else if (start == HERE) {
		long end = r->fd < 0 ? -1 : th_sys(__NR_lseek, r->fd, 0, 1 /* SEEK_CUR */);

		if (th_failed(end)) {
			count_request(rec, r->code);
			return;
		}
		start = (unsigned long long)end - n;
	}
	run_add(rec, r->ep, op_how, start, n);
}

static void answer(struct rec *rec, struct ring *ring, const struct io_uring_cqe *cqe)
{
	bool alone;
	struct request *r = answered(ring, cqe->user_data, cqe->res, &alone);

	if (!r)
		return;
	if (cqe->res >= 0 && r->kind == REQUEST_COUNTED)
		count_request(rec, r->code);
	if (cqe->flags & IORING_CQE_F_MORE)
		return;
	struct request done = *r;

	forget(ring, r);
	if (cqe->res > 0 && done.kind == REQUEST_MOVES)
		moved_by(rec, ring, &done, (unsigned int)cqe->res, alone && !ring->missed);
	while (ring->first != ring->noted && !request_at(ring, ring->first)->kind)
		ring->first++;
}

/* All since the last time; they stay where they are until the kernel needs their place. */
void uring_answers(struct rec *rec, struct ring *ring)
{
	unsigned int end = __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE);

	for (; ring->seen != end; ring->seen++) {
		unsigned int at = ring->seen & (ring->cq_entries - 1);
		struct io_uring_cqe cqe;

		th_copy(&cqe, ring->cqes + (size_t)at * ring->cqe_size, sizeof(cqe));
		if (__atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE) - ring->seen >
		    ring->cq_entries)
			lose(rec, TH_LOST_EXTENTS, 1);
		else
			answer(rec, ring, &cqe);
	}
}
