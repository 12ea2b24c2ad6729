// SPDX-License-Identifier: Apache-2.0
/*
 * Closed files: a short record replaces the episode, whose memory is reused. A page of the arena
 * costs one or two microseconds, so the space of an episode is a good part of an open's cost.
 */
#include "record.h"

static bool fits(const struct th_episode *ep)
{
	unsigned long long most = ep->read_ops | ep->write_ops | ep->seq_ops | ep->small_ops;

	return most >> 32 == 0 && !ep->lost_ops;
}

static void shorten(struct th_brief *to, const struct th_episode *ep, unsigned long long last)
{
	to->state = ep->state;
	to->open_id = ep->open_id;
	to->ino = ep->ino;
	to->dev = ep->dev;
	to->generation = ep->generation;
	to->mode = ep->mode;
	to->flags = ep->flags;
	to->nlink = ep->nlink;
	to->path = ep->path;
	to->fd = ep->fd;
	to->run_seq = ep->run_seq;
	to->size_open = ep->size_open;
	to->size_close = ep->size_close;
	to->open_ns = ep->open_ns;
	to->close_ns = ep->close_ns;
	to->first_ns = ep->first_ns;
	to->last_ns = last;
	to->read_bytes = ep->read_bytes;
	to->write_bytes = ep->write_bytes;
	to->read_ops = (unsigned int)ep->read_ops;
	to->write_ops = (unsigned int)ep->write_ops;
	to->seq_ops = (unsigned int)ep->seq_ops;
	to->small_ops = (unsigned int)ep->small_ops;
	__atomic_store_n(&to->kind, TH_BRIEF, __ATOMIC_RELEASE); /* last: the record is complete */
}

/* Shorten a closed episode that nothing else refers to, if its memory is needed. */
void episode_closed(struct rec *rec, struct th_episode *ep)
{
	unsigned int i = 0;

	while (i < TH_SPARES && rec->spares[i])
		i++;
	if (i == TH_SPARES || rec->page->first_used < TH_FIRST)
		return;
	unsigned long long last =
		ep->inner.last_ns > ep->outer.last_ns ? ep->inner.last_ns : ep->outer.last_ns;

	/* first, because most kills happen when a page is touched for the first time */
	struct th_brief *to = record_new(rec, TH_BRIEF, sizeof(*to));

	if (!to)
		return;
	run_end(rec, ep);
	if (!fits(ep))
		return;
	shorten(to, ep, last);
	ep->kind = 0;
	__atomic_store_n(&rec->spares[i], ep,
			 __ATOMIC_RELEASE); /* of two threads, one loses its spare */
}

struct th_episode *episode_spare(struct rec *rec)
{
	for (unsigned int i = 0; i < TH_SPARES; i++) {
		struct th_episode *ep = rec->spares[i] ? __atomic_exchange_n(&rec->spares[i], NULL,
									     __ATOMIC_SEQ_CST)
						       : NULL;

		if (!ep)
			continue;
		th_zero(ep, sizeof(*ep));
		return ep;
	}
	return NULL;
}
