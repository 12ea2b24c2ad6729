// SPDX-License-Identifier: Apache-2.0
/* Runs of accesses (collectors/ebpf/runs.h): a finished one becomes a record. */
#include "runs.h"

static void send_run(struct rec *rec, struct th_episode *ep)
{
	struct th_extent *out = record_new(rec, TH_EXTENT, sizeof(*out));

	if (!out) {
		ep->lost_ops += ep->outer.ops;
		lose(rec, TH_LOST_EXTENTS, ep->outer.ops);
		return;
	}
	out->run_seq = ep->run_seq++;
	out->open_id = ep->open_id;
	out->run = ep->outer;
	out->kind = TH_EXTENT; /* last: the record is complete */
}

static void run_break(struct rec *rec, struct th_episode *ep)
{
	if (!ep->inner.ops)
		return;
	if (ep->outer.ops) {
		if (run_fold(&ep->outer, &ep->inner, arena->gap))
			return;
		send_run(rec, ep);
	}
	ep->outer = ep->inner;
}

/* End the runs of an episode: open runs become records. */
void run_end(struct rec *rec, struct th_episode *ep)
{
	run_break(rec, ep);
	ep->inner.ops = 0;
	if (ep->outer.ops)
		send_run(rec, ep);
	ep->outer.ops = 0;
}

static void run_begin(struct rec *rec, struct th_episode *ep, unsigned int op_how,
		      unsigned long long start, unsigned long long len, unsigned long long now)
{
	run_break(rec, ep);
	if (!ep->first_ns)
		ep->first_ns = now;
	run_start(&ep->inner, op_how, start, len, now);
}

/* Add an access of `len` bytes at `start`; truncations have no length and never join a run. */
void run_add(struct rec *rec, struct th_episode *ep, unsigned int op_how, unsigned long long start,
	     unsigned long long len)
{
	unsigned long long now = now_ticks();
	unsigned int op = op_how & 0xff;
	struct th_run *in = &ep->inner;
	unsigned long long known = run_mapped(in, op_how, start);

	if (known) {
		if (len <= known) {
			in->ops++;
			in->last_ns = now;
			return;
		}
		start += known;
		len -= known;
	}
	if (op <= TH_WRITE)
		count_op(ep, op, start, len);
	if (op <= TH_WRITE && goes_on(in, op_how, start, now))
		run_grow(in, len, now);
	else
		run_begin(rec, ep, op_how, start, len, now);
}

static void pipe_op(struct th_episode *ep, unsigned int op, unsigned long long len)
{
	unsigned long long now = now_ticks();

	if (!ep->first_ns)
		ep->first_ns = now;
	ep->inner.last_ns = now;
	count_op(ep, op, ~0ULL, len);
}

/* Return the offset at which an operation of `len` bytes at the file position began. */
static long long position(struct rec *rec, struct slot *slot, long fd, unsigned long long len,
			  unsigned int op)
{
	if (slot->shared || slot->pos < 0 || slot->forks != rec->forks ||
	    (slot->append && op == TH_WRITE)) {
		long at = th_sys(__NR_lseek, fd, 0, 1 /* SEEK_CUR */);

		slot->pos = th_failed(at) ? -1 : at;
		return slot->pos - (long long)len;
	}
	long long at = slot->pos;

	slot->pos += (long long)len;
	return at;
}

/* Record a transfer of `len` bytes on `fd` at `pos`; -1: up to the current file position. */
void moved(struct rec *rec, long fd, unsigned int op_how, long long pos, unsigned long long len)
{
	struct slot *slot = slot_use(rec, fd);

	if (!slot || slot->kind > SLOT_PIPE)
		return;
	struct th_episode *ep = episode_of(rec, slot, fd);

	hold(slot);
	if (ep && slot->kind == SLOT_PIPE) {
		pipe_op(ep, op_how & 0xff, len);
	} else if (ep) {
		if (pos < 0)
			pos = position(rec, slot, fd, len, op_how & 0xff);
		slot->writes |= (op_how & 0xff) == TH_WRITE;
		if (pos >= 0)
			run_add(rec, ep, op_how, (unsigned long long)pos, len);
	}
	release(slot);
}

/* Record a range without an observed transfer: mapped, submitted, truncated, deallocated. */
void touched(struct rec *rec, long fd, unsigned int op_how, unsigned long long start,
	     unsigned long long len)
{
	struct slot *slot = slot_use(rec, fd);

	if (!slot || slot->kind != SLOT_FILE)
		return;
	struct th_episode *ep = episode_of(rec, slot, fd);

	hold(slot);
	slot->writes |= (op_how & 0xff) != TH_READ;
	if (ep)
		run_add(rec, ep, op_how, start, len);
	release(slot);
}
