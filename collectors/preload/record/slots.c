// SPDX-License-Identifier: Apache-2.0
/*
 * Descriptors of this process and their open episodes. If the open of a descriptor was not recorded
 * (inherited, passed, made by dup), its episode begins when it is used first.
 */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "record.h"

#define SPINS 2000

static long read_facts(long fd, struct statx *facts)
{
	return facts_of(fd, STATX_BASIC_STATS | STATX_BTIME, facts);
}

struct slot *slot_at(struct rec *rec, long fd)
{
	return (unsigned long)fd < rec->slot_count ? &rec->slots[fd] : NULL;
}

/* Raise rec->top. If it changed meanwhile, another thread has raised it: it never falls. */
static void raise_top(struct rec *rec, unsigned int top)
{
	unsigned int before = __atomic_load_n(&rec->top, __ATOMIC_RELAXED);

	while (before < top && !__atomic_compare_exchange_n(&rec->top, &before, top, false,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Fill a slot for the open `fd`. Its kind is set last, because other threads may wait for it. */
static void slot_begin(struct rec *rec, struct slot *slot, long fd, unsigned int path,
		       unsigned long flags, unsigned int state)
{
	struct statx facts;
	enum slot_kind kind = SLOT_OTHER;
	struct th_episode *ep = NULL;

	if (!th_failed(read_facts(fd, &facts)))
		kind = slot_kind_of(fd, &facts, flags);
	if (!path && (kind == SLOT_FILE || kind == SLOT_DIR))
		path = path_asked(rec, fd, !facts.stx_nlink);
	if (kind == SLOT_FILE && (state & TH_EP_INHERITED) && !path)
		kind = SLOT_OTHER; /* a memory file (memfd) */
	if (kind == SLOT_FILE || kind == SLOT_PIPE)
		ep = episode_new(rec, fd, &facts, flags,
				 state | (kind == SLOT_PIPE ? TH_EP_PIPE : 0));
	if (ep) {
		ep->path = kind == SLOT_FILE ? path : 0;
		ep->kind = TH_EPISODE;
	} else if (kind == SLOT_FILE || kind == SLOT_PIPE) {
		kind = SLOT_OTHER;
	}
	slot->ep = ep;
	slot->owner = this_thread();
	slot->pos = state & TH_EP_INHERITED ? -1 : 0;
	slot->path = path;
	slot->forks = rec->forks;
	slot->shared = !!(state & TH_EP_INHERITED);
	slot->append = !!(flags & O_APPEND);
	slot->writes = !!(state & (TH_EP_CREATED | TH_EP_TRUNCATED));
	slot->held = 0;
	raise_top(rec, (unsigned int)fd + 1);
	__atomic_store_n(&slot->kind, kind, __ATOMIC_RELEASE);
}

/* Return the slot of a descriptor and begin its episode if needed; NULL: not available. */
struct slot *slot_use(struct rec *rec, long fd)
{
	struct slot *slot = slot_at(rec, fd);
	unsigned char none = SLOT_NONE;

	if (!slot) {
		if (fd >= 0)
			lose(rec, TH_LOST_TABLE, 1);
		return NULL;
	}
	unsigned char kind = __atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE);

	if (kind > SLOT_BUSY)
		return slot;
	if (kind == SLOT_NONE && __atomic_compare_exchange_n(&slot->kind, &none, SLOT_BUSY, false,
							     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		long flags = th_sys(__NR_fcntl, fd, F_GETFL);

		slot_begin(rec, slot, fd, 0,
			   th_failed(flags) ? 0 : (unsigned long)flags & ~0100000UL,
			   TH_EP_INHERITED);
		return slot;
	}
	/* another thread is filling it, or this one, and a signal handler runs */
	for (unsigned int i = 0; i < SPINS; i++) {
		if (__atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE) > SLOT_BUSY)
			return slot;
		__asm__ volatile("pause");
	}
	lose(rec, TH_LOST_EXTENTS, 1);
	return NULL;
}

void slot_opened(struct rec *rec, long fd, unsigned int path, unsigned long flags, bool created)
{
	struct slot *slot = slot_at(rec, fd);
	unsigned int state = created ? TH_EP_CREATED : flags & O_TRUNC ? TH_EP_TRUNCATED : 0;

	if (!slot) {
		lose(rec, TH_LOST_TABLE, 1);
		return;
	}
	slot_closed(rec, fd); /* by a call that was not recorded */
	slot_begin(rec, slot, fd, path, flags, state);
	struct th_episode *ep = __atomic_load_n(&slot->ep, __ATOMIC_ACQUIRE);

	if (ep && slot->kind == SLOT_FILE && (state & TH_EP_TRUNCATED))
		run_add(rec, ep, TH_OP(TH_TRUNCATE, TH_HOW_OPEN, 0), 0, 0);
}

void slot_closed(struct rec *rec, long fd)
{
	struct slot *slot = slot_at(rec, fd);

	if (!slot || slot->kind <= SLOT_BUSY)
		return;
	struct th_episode *ep = slot->ep;

	__atomic_store_n(&slot->ep, NULL, __ATOMIC_RELEASE);
	if (ep) {
		ep->close_ns = now_ticks();
		if (!slot->shared && !slot->held && slot->owner == this_thread())
			episode_closed(rec, ep);
	}
	__atomic_store_n(&slot->kind, SLOT_NONE, __ATOMIC_RELEASE);
}

void slot_settle(struct rec *rec, long fd)
{
	struct slot *slot = slot_at(rec, fd);
	struct statx facts;

	if (!slot || slot->kind != SLOT_FILE || !slot->writes || th_failed(read_facts(fd, &facts)))
		return;
	struct th_episode *ep = __atomic_load_n(&slot->ep, __ATOMIC_ACQUIRE);

	/* another thread may close the descriptor and open another file by its number */
	if (ep && facts.stx_ino == ep->ino) {
		ep->size_close = facts.stx_size;
		ep->nlink = facts.stx_nlink;
	}
}

void slots_settle(struct rec *rec)
{
	for (unsigned int fd = 0; fd < rec->top; fd++)
		slot_settle(rec, fd);
}
