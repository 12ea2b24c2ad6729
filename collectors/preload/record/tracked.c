// SPDX-License-Identifier: Apache-2.0
/*
 * Mapped files that are larger than what one fault brings in: their range is the bound that is
 * recorded at once, and stays where the process is killed; the pages that were used replace it
 * when they are unmapped (settle.c). Those of the loader, and what is left over here, are ranges.
 */
#include <linux/mman.h>
#include "tracked.h"

#define PROT_EXEC_BIT 4
#define MAP_DENYWRITE_BIT 0x800 /* the loader gives it */

struct tracker *tracker;

bool track_claim(struct tracked *t)
{
	unsigned int used = TRACKED_USED;

	return __atomic_compare_exchange_n(&t->state, &used, TRACKED_BUSY, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

void track_release(struct tracked *t, enum tracked_state state)
{
	__atomic_store_n(&t->state, state, __ATOMIC_RELEASE);
}

/* What a child of vfork does to mappings is done to its parent's: nothing is tracked there. */
bool tracks(const struct rec *rec)
{
	return tracker && rec == own_rec;
}

static bool tracker_here(void)
{
	struct tracker *none = NULL, *fresh = tracker ? NULL : th_map(sizeof(*fresh));

	if (!fresh)
		return tracker;
	fresh->watch = -1;
	fresh->faults = TH_FAULTS;
	fresh->looks = TH_LOOKS;
	if (!__atomic_compare_exchange_n(&tracker, &none, fresh, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		th_sys(__NR_munmap, fresh, sizeof(*fresh));
	return true;
}

static struct tracked *free_place(void)
{
	for (unsigned int i = 0; i < TH_TRACKED; i++) {
		unsigned int none = TRACKED_FREE;

		if (__atomic_compare_exchange_n(&tracker->maps[i].state, &none, TRACKED_BUSY, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return &tracker->maps[i];
	}
	return NULL;
}

/* The mapped range, into `ep`. */
void track_bound(struct rec *rec, const struct tracked *t, struct th_episode *ep, bool read,
		 bool written)
{
	const struct mapping *m = &t->map;
	unsigned long long len = m->size > m->start ? m->size - m->start : 0;

	if (len > m->len)
		len = m->len;
	if (read && len)
		run_add_at(rec, ep, TH_OP(TH_READ, TH_HOW_MMAP, 1), m->start, len, t->when);
	if (written && len)
		run_add_at(rec, ep, TH_OP(TH_WRITE, TH_HOW_MMAP, 1), m->start, len, t->when);
}

/* Returns whether it is tracked; then all about it is done. `ep`: of the file that is mapped. */
bool track_begin(struct rec *rec, const struct mapping *m, const struct th_episode *ep,
		 const struct th_call *c)
{
	unsigned long len = (m->len + TH_ARENA_PAGE - 1) & ~(TH_ARENA_PAGE - 1UL);

	if (rec != own_rec || m->len <= (m->shared ? TH_AROUND : TH_PRIVATE) || !ep ||
	    (c->arg[2] & PROT_EXEC_BIT) || (c->arg[3] & MAP_DENYWRITE_BIT) || !tracker_here() ||
	    !tracker->looks)
		return false;
	struct tracked *t = free_place();
	struct th_episode *own = t ? episode_part(rec, ep) : NULL;

	if (!own) {
		if (t)
			track_release(t, TRACKED_FREE);
		return false;
	}
	t->map = *m;
	t->map.len = len;
	t->map.ep = own;
	t->when = now_ticks();
	t->pages = TH_NOT_LOOKED;
	t->inherited = false;
	t->reclaims = reclaims_known();
	t->watched = len <= TH_WATCHED_PAGES * TH_ARENA_PAGE && tracker->faults &&
		     pages_watch(m->at, len);
	track_bound(rec, t, own, true, m->written);
	track_release(t, TRACKED_USED);
	return true;
}

static void look_at(struct rec *rec, struct tracked *t, int pagemap, const struct reclaims *now)
{
	if (tracker->looks)
		tracker->looks--;
	track_settle(rec, t, pagemap, reclaimed_since(t->reclaims, now));
}

/* What one mapping was used for, before it is gone. */
static void settle_one(struct rec *rec, struct tracked *t)
{
	struct reclaims now;
	int pagemap = pages_open();

	reclaims_now(&now);
	look_at(rec, t, pagemap, &now);
	if (pagemap >= 0)
		th_sys(__NR_close, pagemap);
}

/* Before the program ends: all that was used until now. They stay tracked. */
void track_look(struct rec *rec)
{
	int pagemap = -1;
	struct reclaims now = {0};

	for (unsigned int i = 0; tracks(rec) && i < TH_TRACKED; i++) {
		struct tracked *t = &tracker->maps[i];

		if (!track_claim(t))
			continue;
		if (pagemap < 0) {
			pagemap = pages_open();
			reclaims_now(&now);
		}
		look_at(rec, t, pagemap, &now);
		track_release(t, TRACKED_USED);
	}
	if (pagemap >= 0)
		th_sys(__NR_close, pagemap);
}

/* From now on a range as all others: its pages are not where they were, or not as they were. */
static void give_up(struct rec *rec, struct tracked *t)
{
	if (t->inherited) {
		settle_one(rec, t);
	} else {
		if (t->watched)
			pages_unwatch(t->map.at, t->map.len);
		map_remember(rec, &t->map);
	}
	track_release(t, TRACKED_FREE);
}

static bool overlaps(const struct tracked *t, unsigned long at, unsigned long len)
{
	return t->state == TRACKED_USED && t->map.at < at + len && at < t->map.at + t->map.len;
}

void track_give_up(struct rec *rec, unsigned long at, unsigned long len)
{
	for (unsigned int i = 0; tracks(rec) && i < TH_TRACKED; i++)
		if (overlaps(&tracker->maps[i], at, len) && track_claim(&tracker->maps[i]))
			give_up(rec, &tracker->maps[i]);
}

/* Of a file whose pages from `size` on are taken from all mappings. */
void track_cut(struct rec *rec, const struct th_episode *of, unsigned long long size)
{
	for (unsigned int i = 0; tracks(rec) && of && i < TH_TRACKED; i++) {
		struct tracked *t = &tracker->maps[i];
		const struct mapping *m = &t->map;

		if (t->state == TRACKED_USED && m->ep->ino == of->ino && m->ep->dev == of->dev &&
		    size < m->start + m->len && track_claim(t))
			give_up(rec, t);
	}
}

/* These are about to be unmapped. */
void track_unmap(struct rec *rec, unsigned long at, unsigned long len)
{
	for (unsigned int i = 0; tracks(rec) && i < TH_TRACKED; i++) {
		struct tracked *t = &tracker->maps[i];

		if (!overlaps(t, at, len) || !track_claim(t))
			continue;
		if (t->map.at < at || t->map.at + t->map.len > at + len) {
			give_up(rec, t);
			continue;
		}
		settle_one(rec, t);
		track_release(t, TRACKED_FREE);
	}
}

/* They become writable. */
void track_writable(struct rec *rec, unsigned long at, unsigned long len)
{
	for (unsigned int i = 0; tracks(rec) && i < TH_TRACKED; i++) {
		struct tracked *t = &tracker->maps[i];

		if (!overlaps(t, at, len) || !t->map.shared || t->map.written || !track_claim(t))
			continue;
		t->map.written = true;
		if (!t->inherited)
			track_bound(rec, t, t->map.ep, false, true);
		track_release(t, TRACKED_USED);
	}
}
