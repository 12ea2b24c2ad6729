// SPDX-License-Identifier: Apache-2.0
/*
 * Fast path for reads and writes of a file that this thread opened and does not share: most calls
 * of most programs. Other calls use the general path.
 */
#include "process.h"
#include "runs.h"

/* Returns whether it is recorded. */
static inline bool record_quickly(struct rec *rec, struct slot *slot, unsigned long nr,
				  long long offset, unsigned long long len)
{
	bool write = nr == __NR_write || nr == __NR_pwrite64, placed = nr > __NR_write;
	unsigned int op_how =
		write ? TH_OP(TH_WRITE, TH_HOW_WRITE, 0) : TH_OP(TH_READ, TH_HOW_READ, 0);
	unsigned long long now, start = (unsigned long long)(placed ? offset : slot->pos);

	if (slot->kind != SLOT_FILE || slot->shared || slot->owner != this_thread() ||
	    (write && slot->append) || (long long)start < 0 ||
	    (!placed && slot->forks != rec->forks))
		return false;
	hold(slot);
	struct th_episode *ep = slot->ep;

	if (!placed)
		slot->pos += (long long)len;
	slot->writes |= write;
	now = now_ticks();
	if (ep && goes_on(&ep->inner, op_how, start, now)) {
		count_op(ep, op_how & 0xff, start, len);
		run_grow(&ep->inner, len, now);
	} else if (ep) {
		run_add(rec, ep, op_how, start, len);
	}
	release(slot);
	return true;
}

static __attribute__((noinline, cold)) void record_slowly(long fd, unsigned long nr,
							  long long offset, long len)
{
	struct th_call call = {.nr = (long)nr, .arg = {fd, 0, 0, offset}, .ret = len};

	th_recorder.after(&call);
}

void th_quick_after(long fd, unsigned long nr, long long offset, long len)
{
	struct rec *rec = rec_quick();

	if (!rec || (unsigned long)fd >= TH_SLOTS ||
	    !record_quickly(rec, &rec->slots[fd], nr, offset, (unsigned long long)len))
		record_slowly(fd, nr, offset, len);
}
