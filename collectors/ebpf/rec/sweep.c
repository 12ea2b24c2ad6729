// SPDX-License-Identifier: Apache-2.0
/* Episodes in the hash table: those of ended processes are written out and removed. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <sched.h>
#include <stdlib.h>
#include "rec.h"

#define MAPPED_KEY 0xc0000000U /* KEY_MAPPED of share.bpf.h */

struct fd_key {
	unsigned int epoch, fd, tid;
};

/*
 * Add and delete an entry on each processor. The kernel reserves memory for new entries per
 * processor, but only one piece until the first was used; with interrupts off, as in faults, the
 * reserve is not refilled.
 */
void reserve_entries(void)
{
	static const struct th_episode none;
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		struct fd_key key = {.fd = cpu};

		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (!CPU_ISSET(cpu, &all) || sched_setaffinity(0, sizeof(one), &one))
			continue;
		if (!bpf_map_update_elem(maps.hashed_fd, &key, &none, BPF_ANY))
			bpf_map_delete_elem(maps.hashed_fd, &key);
	}
	sched_setaffinity(0, sizeof(all), &all);
}

/* Whether the epoch is alive; for mappings, also whether a descendant may still use them. */
static bool in_use(unsigned int epoch, unsigned int key)
{
	for (unsigned int i = 1; i < slots_used(); i++) {
		const struct th_process *proc = &maps.procs[i];

		if (proc->state != TH_LIVE)
			continue;
		if (proc->epoch == epoch)
			return true;
		if (key < MAPPED_KEY || !(proc->flags & TH_PROC_MAPPED))
			continue;
		for (int a = 0; a < TH_ANCESTORS; a++)
			if (proc->ancestors[a] == epoch)
				return true;
	}
	return false;
}

/*
 * The hash table: descriptors 16 and above, threads, io_uring, mappings. Episodes of ended epochs
 * are written out and removed; with `snapshots`, all others are written out in their current state.
 */
void sweep_hashed(bool snapshots)
{
	struct fd_key key, next, *old = NULL;
	struct fd_key *gone = NULL;
	size_t n = 0, room = 0;
	struct th_episode ep;

	while (!bpf_map_get_next_key(maps.hashed_fd, old, &next)) {
		bool found = in_use(next.epoch, next.fd);

		if (!found) {
			if (n == room) {
				struct fd_key *more =
					realloc(gone, (room = room * 2 + 256) * sizeof(*gone));

				if (!more)
					break;
				gone = more;
			}
			gone[n++] = next;
		}
		if (found && snapshots && !bpf_map_lookup_elem(maps.hashed_fd, &next, &ep) &&
		    (ep.state & TH_EP_LIVE) && !(ep.state & TH_EP_IGNORED)) {
			ep.kind = TH_SNAPSHOT;
			episode_out(&ep);
		}
		key = next;
		old = &key;
	}
	for (size_t i = 0; i < n; i++) {
		if (bpf_map_lookup_elem(maps.hashed_fd, &gone[i], &ep))
			continue;
		ep.kind = TH_EPISODE;
		/* not measured at exit: lower bounds from the open and the writes */
		ep.nlink = 1;
		ep.size_close = ep.size_open;
		if (ep.write_ops && ep.next != ~0ULL && ep.next > ep.size_close)
			ep.size_close = ep.next;
		if ((ep.state & TH_EP_LIVE) && !(ep.state & TH_EP_IGNORED))
			episode_out(&ep);
		bpf_map_delete_elem(maps.hashed_fd, &gone[i]);
	}
	free(gone);
}
