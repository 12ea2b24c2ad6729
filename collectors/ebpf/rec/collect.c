// SPDX-License-Identifier: Apache-2.0
/* From the rings and maps to the spool: records as they arrive, the rest at the end. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>
#include "rec.h"

#define TICK_NS 1000000000ULL
#define HASH_TICKS 5

static bool sweep_wanted;
static unsigned int ticks;
static unsigned long long next_tick; /* 0: none yet */
/* per direct episode: open_id and operations at its last snapshot */
static unsigned long long *seen_ops;

int collect_init(void)
{
	seen_ops = calloc((size_t)maps.slots * TH_DIRECT_FDS, sizeof(*seen_ops));
	return seen_ops ? 0 : -1;
}

void collect_free(void)
{
	free(seen_ops);
}

unsigned int slots_used(void)
{
	unsigned int used = __atomic_load_n(&maps.state->slots_used, __ATOMIC_SEQ_CST) + 1;

	return used < maps.slots ? used : maps.slots;
}

void episode_out(const struct th_episode *ep)
{
	spool_put(SPOOL_EPISODES, ep, sizeof(*ep));
}

/* Write out the open episodes of an ended process and free its slot. */
static void slot_finish(unsigned int slot)
{
	struct th_process *proc = &maps.procs[slot];

	for (unsigned int fd = 0; fd < TH_DIRECT_FDS; fd++) {
		struct th_episode *ep = &maps.episodes[slot * TH_DIRECT_FDS + fd];

		if (!(ep->state & TH_EP_LIVE))
			continue;
		ep->kind = TH_EPISODE;
		if (!(ep->state & TH_EP_IGNORED) && ep->epoch == proc->epoch)
			episode_out(ep);
		ep->state = 0;
	}
	if (proc->hashed)
		sweep_wanted = true;
	spool_put(SPOOL_PROCESSES, proc, sizeof(*proc));
	proc->state = TH_FREE;
	bpf_map_update_elem(maps.free_fd, NULL, &slot, BPF_ANY);
}

static void exec_out(const struct th_exec *rec, size_t size)
{
	if (!exec_put(rec, size))
		return;
	if (!rec->old.epoch)
		return; /* adopted: no epoch ended */
	spool_put(SPOOL_PROCESSES, &rec->old, sizeof(rec->old));
	if (rec->old.hashed)
		sweep_wanted = true;
}

int collect_event(void *ctx, void *data, size_t size)
{
	(void)ctx;
	switch (*(unsigned int *)data) {
	case TH_EPISODE:
		episode_out(data);
		break;
	case TH_EXEC:
		exec_out(data, size);
		break;
	case TH_EXIT: {
		const struct th_process *proc = data;

		if (proc->slot < maps.slots && maps.procs[proc->slot].state == TH_ENDED &&
		    maps.procs[proc->slot].epoch == proc->epoch)
			slot_finish(proc->slot);
		break;
	}
	case TH_PATH:
		resolve_path_added(data);
		break;
	case TH_NAME:
		resolve_name(data);
		break;
	}
	return 0;
}

/* Write out open episodes and processes, in case the recorder is killed. */
static void snapshot(void)
{
	for (unsigned int slot = 1; slot < slots_used(); slot++) {
		if (maps.procs[slot].state != TH_LIVE)
			continue;
		struct th_process proc = maps.procs[slot];

		proc.kind = TH_ALIVE;
		spool_put(SPOOL_PROCESSES, &proc, sizeof(proc));
		for (unsigned int fd = 0; fd < TH_DIRECT_FDS; fd++) {
			unsigned int i = slot * TH_DIRECT_FDS + fd;
			struct th_episode ep = maps.episodes[i];
			unsigned long long ops = ep.open_id + ep.read_ops + ep.write_ops;

			if (!(ep.state & TH_EP_LIVE) || (ep.state & TH_EP_IGNORED) ||
			    ep.epoch != proc.epoch || seen_ops[i] == ops)
				continue;
			seen_ops[i] = ops;
			ep.kind = TH_SNAPSHOT;
			episode_out(&ep);
		}
	}
}

int collect_extent(void *ctx, void *data, size_t size)
{
	(void)ctx;
	if (spool_full(SPOOL_EXTENTS, size)) {
		/* on disk, runs are useless without the episode of their file */
		snapshot();
		spool_flush();
	}
	spool_put(SPOOL_EXTENTS, data, size);
	return 0;
}

/* Write ended processes to disk. */
void collect_flush(void)
{
	for (unsigned int slot = 1; slot < slots_used(); slot++)
		if (maps.procs[slot].state == TH_ENDED)
			slot_finish(slot);
	spool_flush();
}

/* Once a second: process ends that the ring dropped, old episodes, snapshots. `now` is in ns. */
void collect_tick(unsigned long long now)
{
	if (!next_tick)
		next_tick = now + TICK_NS;
	if (now < next_tick)
		return;
	next_tick = now + TICK_NS;
	for (unsigned int slot = 1; slot < slots_used(); slot++)
		if (maps.procs[slot].state == TH_ENDED)
			slot_finish(slot);
	/* walking the whole table takes up to 50 ms: not each second */
	if (sweep_wanted || ticks++ % HASH_TICKS == 1) {
		sweep_hashed(ticks % HASH_TICKS == 2);
		sweep_wanted = false;
	}
	snapshot();
	spool_flush();
}

static void losses_out(void)
{
	spool_flush(); /* so that all failed writes are counted */
	for (unsigned int kind = 0; kind < TH_LOST_KINDS; kind++) {
		struct th_spool_loss loss = {.kind = kind, .count = maps.state->lost[kind]};

		if (loss.count)
			spool_put(SPOOL_LOSSES, &loss, sizeof(loss));
	}
	struct th_spool_loss misses = {.kind = TH_LOSS_RECURSION, .count = tracer_misses()};
	struct th_spool_loss unwritten = {.kind = TH_LOSS_SPOOL_WRITE, .count = spool_lost()};

	if (misses.count)
		spool_put(SPOOL_LOSSES, &misses, sizeof(misses));
	if (unwritten.count)
		spool_put(SPOOL_LOSSES, &unwritten, sizeof(unwritten));
}

/* Write out the remaining contents of the maps. */
void collect_finish(void)
{
	for (unsigned int slot = 1; slot < slots_used(); slot++)
		if (maps.procs[slot].state == TH_ENDED)
			slot_finish(slot);
	memset(seen_ops, 0, (size_t)maps.slots * TH_DIRECT_FDS * sizeof(*seen_ops));
	snapshot(); /* processes that outlive the recording */
	for (unsigned int slot = 1; slot < slots_used(); slot++)
		maps.procs[slot].state = TH_FREE;
	sweep_hashed(false);
	losses_out();
}
