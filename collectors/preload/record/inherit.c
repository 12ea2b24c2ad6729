// SPDX-License-Identifier: Apache-2.0
/* Tracked mappings of a child by fork: its parent made them, the kernel does not watch them here. */
#include "tracked.h"

/*
 * What its parent mapped shared. Private pages may be copies of those that the parent used: they are
 * nobody's here.
 */
void track_inherit(struct rec *rec)
{
	if (!tracks(rec))
		return;
	pages_inherited();
	for (unsigned int i = 0; i < TH_TRACKED; i++) {
		struct tracked *t = &tracker->maps[i];

		if (t->state != TRACKED_USED || !t->map.shared) {
			t->state = TRACKED_FREE;
			continue;
		}
		t->when = now_ticks();
		t->reclaims = reclaims_known();
		t->pages = TH_NOT_LOOKED;
		t->watched = false;
		t->inherited = true;
	}
}

/* Whether a child that has no record yet used pages that its parent mapped. */
bool track_used(void)
{
	struct spans which = {.fd = -1, .most = 1};
	bool used = false;

	if (!tracker || th_vforked())
		return false;
	for (unsigned int i = 0; !used && i < TH_TRACKED; i++) {
		const struct tracked *t = &tracker->maps[i];

		if (t->state != TRACKED_USED || !t->map.shared)
			continue;
		if (which.fd < 0)
			which.fd = pages_open();
		used = which.fd >= 0 && pages_spans(&which, &t->map, NULL, NULL) > 0;
	}
	if (which.fd >= 0)
		th_sys(__NR_close, which.fd);
	return used;
}
