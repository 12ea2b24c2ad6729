// SPDX-License-Identifier: Apache-2.0
/*
 * The pages of a mapping that were used take the place of its bound, the mapped range: before it is
 * unmapped, and when the program ends. Times are that of the mapping.
 */
#include "tracked.h"

struct spread {
	struct rec *rec;
	struct tracked *t;
	unsigned int op_how;
};

/* The file may have grown since it was mapped: its end is known as it was then. */
static void span(void *with, unsigned long at, unsigned long end)
{
	const struct spread *s = with;
	const struct mapping *m = &s->t->map;
	unsigned long long from = m->start + (at - m->at), to = m->start + (end - m->at);

	if (from < m->size && to > m->size && to - m->size < TH_ARENA_PAGE)
		to = m->size;
	run_add_at(s->rec, &s->t->fresh, s->op_how, from, to - from, s->t->when);
}

static void begin_again(struct tracked *t)
{
	struct th_episode *ep = &t->fresh;

	*ep = *t->map.ep;
	ep->read_ops = ep->read_bytes = ep->write_ops = ep->write_bytes = 0;
	ep->seq_ops = ep->small_ops = ep->first_ns = 0;
	ep->next = ~0ULL;
	ep->outer.ops = ep->inner.ops = 0;
}

/* A child by fork begins an episode of its own when it has used a page. */
static bool begin_own(struct rec *rec, struct tracked *t)
{
	struct th_episode *ep = episode_like(rec, t->map.ep);

	if (!ep)
		return false;
	ep->size_open = ep->size_close = t->map.size;
	ep->open_ns = t->when;
	t->map.ep = ep;
	t->inherited = false;
	return true;
}

/* Where pages were taken away, the mapped range is the bound of what was read. */
static bool spread(struct rec *rec, struct tracked *t, int pagemap, bool reclaimed)
{
	struct spread to = {.rec = rec, .t = t, .op_how = TH_OP(TH_READ, TH_HOW_MMAP, 1)};
	struct spans which = {.fd = pagemap, .watched = t->watched};
	long pages = 0;

	begin_again(t);
	if (!reclaimed)
		pages = pages_spans(&which, &t->map, span, &to);
	t->pages = (unsigned long)pages;
	track_bound(rec, t, &t->fresh, reclaimed, reclaimed && t->map.written && !t->watched);
	which.written = t->watched; /* else whatever was used may have been written */
	to.op_how = TH_OP(TH_WRITE, TH_HOW_MMAP, 1);
	if (pages >= 0 && t->map.written && (t->watched || !reclaimed))
		pages = pages_spans(&which, &t->map, span, &to);
	return pages >= 0;
}

/* t is claimed. What cannot be told stays a bound; of a child by fork, only if it used a page. */
void track_settle(struct rec *rec, struct tracked *t, int pagemap, bool reclaimed)
{
	struct spans which = {.fd = pagemap, .watched = t->watched};

	if (pagemap < 0)
		return;
	if (t->inherited || t->pages != TH_NOT_LOOKED) {
		long pages = pages_spans(&which, &t->map, NULL, NULL);

		if (pages < 0 || (t->inherited && !pages) || (unsigned long)pages == t->pages)
			return;
	}
	if (t->inherited && !begin_own(rec, t))
		return;
	if (!spread(rec, t, pagemap, reclaimed))
		return;
	*t->map.ep = t->fresh;
	__atomic_store_n(&t->map.ep->kind, TH_EPISODE, __ATOMIC_RELEASE); /* last: it is whole */
	if (t->watched)
		tracker->faults -=
			t->pages < tracker->faults ? (unsigned int)t->pages : tracker->faults;
}
