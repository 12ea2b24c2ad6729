// SPDX-License-Identifier: Apache-2.0
/*
 * Episodes of open files. Each thread that uses a descriptor of another thread has its own share of
 * the episode, so nothing is locked.
 */
#include <linux/stat.h>
#include "record.h"

#define TAKEN 1UL /* an entry of the table that a thread is filling */

static unsigned int birth(const struct statx *facts)
{
	if (!(facts->stx_mask & STATX_BTIME) || !facts->stx_btime.tv_sec)
		return 0;
	unsigned long long ns = (unsigned long long)facts->stx_btime.tv_sec * 1000000000ULL +
				facts->stx_btime.tv_nsec;

	return (unsigned int)((ns * 0x9e3779b97f4a7c15ULL) >> 33) | 1;
}

struct th_episode *episode_new(struct rec *rec, long fd, const struct statx *facts,
			       unsigned long flags, unsigned int state)
{
	struct th_episode *ep = episode_spare(rec);

	if (!ep)
		ep = record_new(rec, TH_EPISODE, sizeof(*ep));
	if (!ep) {
		lose(rec, TH_LOST_TABLE, 1);
		return NULL;
	}
	unsigned int n = __atomic_fetch_add(&rec->page->proc.opens, 1, __ATOMIC_RELAXED);

	ep->open_id = (unsigned long long)rec->epoch << 32 | n;
	ep->epoch = rec->epoch;
	ep->fd = (int)fd;
	ep->ino = facts->stx_ino;
	ep->dev = facts->stx_dev_major << 20 | facts->stx_dev_minor;
	ep->generation = birth(facts);
	ep->mode = facts->stx_mode;
	ep->nlink = facts->stx_nlink;
	ep->flags = (unsigned int)flags;
	ep->size_open = ep->size_close = facts->stx_size;
	ep->open_ns = now_ticks();
	ep->next = ~0ULL;
	ep->state = TH_EP_LIVE | state;
	return ep;
}

static void same_file(struct th_episode *ep, const struct th_episode *from)
{
	ep->fd = from->fd;
	ep->ino = from->ino;
	ep->dev = from->dev;
	ep->generation = from->generation;
	ep->mode = from->mode;
	ep->nlink = from->nlink;
	ep->flags = from->flags;
	ep->path = from->path;
	ep->size_open = from->size_open;
	ep->open_ns = from->open_ns;
	ep->next = ~0ULL;
}

/* Return a partial episode that counts separately; its counts are to be added to `from`. */
struct th_episode *episode_part(struct rec *rec, const struct th_episode *from)
{
	struct th_episode *ep = record_new(rec, TH_EPISODE, sizeof(*ep));

	if (!ep) {
		lose(rec, TH_LOST_TABLE, 1);
		return NULL;
	}
	same_file(ep, from);
	ep->open_id = from->open_id;
	ep->epoch = from->epoch;
	/* unique: a thread that lost its entry to another thread has two shares */
	ep->tid = __atomic_add_fetch(&rec->share_count, 1, __ATOMIC_RELAXED);
	ep->state = (from->state & ~(TH_EP_CREATED | TH_EP_TRUNCATED)) | TH_EP_PARTIAL;
	ep->kind = TH_EPISODE;
	return ep;
}

/* Return the share of a thread that does not own the slot; it is created if there is none. */
static struct th_episode *episode_share(struct rec *rec, const struct th_episode *own, long fd,
					unsigned long thread)
{
	unsigned long hash = (thread >> 6 ^ (unsigned long)fd * 0x9e3779b1UL) % TH_SHARES;

	for (unsigned int i = 0; i < 16; i++) {
		struct share *share = &rec->shares[(hash + i) % TH_SHARES];

		if (share->thread != thread || share->open_id != own->open_id)
			continue;
		struct th_episode *ep = share->ep;

		if (__atomic_load_n(&share->thread, __ATOMIC_ACQUIRE) == thread)
			return ep; /* no other thread has replaced the entry */
	}
	struct share *place = &rec->shares[hash];

	for (unsigned int i = 0; i < 16; i++)
		if (!rec->shares[(hash + i) % TH_SHARES].thread) {
			place = &rec->shares[(hash + i) % TH_SHARES];
			break;
		}
	struct th_episode *ep = episode_part(rec, own);

	if (!ep)
		return NULL;
	unsigned long before = place->thread;

	if (before != TAKEN && __atomic_compare_exchange_n(&place->thread, &before, TAKEN, false,
							   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
		place->ep = ep;
		place->open_id = own->open_id;
		__atomic_store_n(&place->thread, thread, __ATOMIC_RELEASE);
	}
	return ep;
}

/* Return the episode in which this thread counts; NULL: another thread has closed the file. */
struct th_episode *episode_of(struct rec *rec, struct slot *slot, long fd)
{
	unsigned long thread = this_thread();
	struct th_episode *own = __atomic_load_n(&slot->ep, __ATOMIC_ACQUIRE);

	if (slot->owner == thread || !own)
		return own;
	slot->shared = 1;
	return episode_share(rec, own, fd, thread);
}
