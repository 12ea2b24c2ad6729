// SPDX-License-Identifier: Apache-2.0
/* Processes: creation, waits and exits. */
#include "process.h"

static void put_event(struct rec *rec, enum th_event_kind kind, int pid, int status,
		      unsigned long long t)
{
	struct th_event *out = record_new(rec, TH_EVENT, sizeof(*out));

	if (!out) {
		lose(rec, TH_LOST_LIFECYCLE, 1);
		return;
	}
	out->epoch = rec->epoch;
	out->pid = (unsigned int)pid;
	out->status = status;
	out->t = t;
	out->kind = kind;
}

void process_waited(struct rec *rec, int pid, int status)
{
	put_event(rec, TH_EVENT_WAIT, pid, status, now_ticks());
}

/* From now on a child may move the positions of the open descriptors. */
void process_forking(unsigned long flags, unsigned long long *began)
{
	struct rec *rec = rec_here();

	if (!rec || (flags & TH_CLONE_THREAD))
		return;
	if (flags & TH_CLONE_NEWPID)
		image.other_space |= TH_SPACE_CLONED;
	__atomic_fetch_add(&rec->forks, 1, __ATOMIC_RELAXED);
	*began = now_ticks();
}

void process_forked(long pid, unsigned long flags, unsigned long long began)
{
	if (flags & TH_CLONE_NEWPID)
		image.other_space &= ~(unsigned int)TH_SPACE_CLONED;
	if ((flags & TH_CLONE_VFORK) && pid > 0)
		vforked_done((int)pid);
	struct rec *rec = (flags & TH_CLONE_THREAD) || pid <= 0 ? NULL : rec_here();

	if (rec && began)
		put_event(rec, TH_EVENT_FORK, (int)pid, 0, began);
	else if (rec) /* too many threads created processes at once */
		lose(rec, TH_LOST_LIFECYCLE, 1);
}

/* A child that did nothing has no record: its parent records its start and end. */
void process_exits(int code)
{
	struct rec *rec = rec_begun() ? rec_here() : NULL;

	if (!rec)
		return;
	slots_settle(rec);
	rec->page->proc.exit_status = (code & 0xff) << 8;
	rec->page->proc.cpu_ns = cpu_used();
	rec->page->proc.end_ns = now_ticks();
	rec->page->proc.kind = TH_EXIT;
}
