// SPDX-License-Identifier: Apache-2.0
/* From the rings and maps to the spool: records as they come, what is left at the end. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>
#include "rec.h"

#define HASH_TICKS 5

static bool sweep_wanted;
static unsigned int ticks;
/* what the last snapshot of each open episode saw */
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

static unsigned int slots_used(void)
{
	unsigned int used = __atomic_load_n(&maps.state->slots_used, __ATOMIC_SEQ_CST) + 1;

	return used < maps.slots ? used : maps.slots;
}

static void episode_out(struct th_episode *ep)
{
	spool_put(SPOOL_EPISODES, ep, sizeof(*ep));
}

#define MAPPED_KEY 0xc0000000U /* KEY_MAPPED of share.bpf.h */

/* Whether the epoch goes on; of mappings, whether a descendant may still use them. */
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
 * The hash table: descriptors 16 and above, threads, io_uring, mappings. Episodes
 * of finished epochs are written out and removed; with `snapshots`, the others
 * are written as they are.
 */
static void sweep(bool snapshots)
{
	struct fd_key {
		unsigned int epoch, fd, tid;
	} key, next, *old = NULL;
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
		/* not measured at exit: at least what was there or written */
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

/* The process has ended: write out what its slot still holds and give it back. */
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

static bool marker(const char *text, size_t len)
{
	static const char *const names[] = {
		"TRACEHINT_TASK=",	"SLURM_JOB_ID=",	 "SLURM_ARRAY_JOB_ID=",
		"SLURM_ARRAY_TASK_ID=", "SLURM_STEP_ID=",	 "SLURM_PROCID=",
		"PBS_JOBID=",		"PBS_ARRAY_INDEX=",	 "LSB_JOBID=",
		"LSB_JOBINDEX=",	"OMPI_COMM_WORLD_RANK=", "PMI_RANK=",
		"PMIX_RANK=",		"PARALLEL_SEQ=",	 "MAKELEVEL=",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (len > strlen(names[i]) && !memcmp(text, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Only the variables that name a task leave this process' memory. */
static void exec_out(const struct th_exec *rec, size_t size)
{
	const char *argv = (const char *)(rec + 1), *env = argv + rec->argv_len;
	struct th_spool_exec out = {.epoch = rec->epoch, .argv_len = rec->argv_len};
	char chosen[4096];
	size_t used = 0;

	if (size < sizeof(*rec) + rec->argv_len + rec->env_len)
		return;
	for (size_t at = 0; at < rec->env_len;) {
		size_t len = strnlen(env + at, rec->env_len - at) + 1;

		if (marker(env + at, len - 1) && at + len <= rec->env_len &&
		    used + len <= sizeof(chosen)) {
			memcpy(chosen + used, env + at, len);
			used += len;
		}
		at += len;
	}
	out.argv_off = spool_text(argv, rec->argv_len);
	out.env_len = (unsigned int)used;
	out.env_off = spool_text(chosen, used);
	spool_put(SPOOL_EXECS, &out, sizeof(out));
	if (!rec->old.epoch)
		return; /* it ran already when it began to be followed */
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

/* Open episodes and processes as they are now, for a recorder that gets killed. */
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
		/* runs are of no use on disk without the file that they belong to */
		snapshot();
		spool_flush();
	}
	spool_put(SPOOL_EXTENTS, data, size);
	return 0;
}

/* What has ended goes to disk. */
void collect_flush(void)
{
	for (unsigned int slot = 1; slot < slots_used(); slot++)
		if (maps.procs[slot].state == TH_ENDED)
			slot_finish(slot);
	spool_flush();
}

/* About once a second: ends that the ring had no room for, old episodes, snapshots. */
void collect_tick(void)
{
	for (unsigned int slot = 1; slot < slots_used(); slot++)
		if (maps.procs[slot].state == TH_ENDED)
			slot_finish(slot);
	/* walking the whole table takes up to 50 ms: not each second */
	if (sweep_wanted || ticks++ % HASH_TICKS == 1) {
		sweep(ticks % HASH_TICKS == 2);
		sweep_wanted = false;
	}
	snapshot();
	spool_flush();
}

static void losses_out(void)
{
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

/* Write out what is still in the maps. */
void collect_finish(void)
{
	for (unsigned int slot = 1; slot < slots_used(); slot++)
		if (maps.procs[slot].state == TH_ENDED)
			slot_finish(slot);
	memset(seen_ops, 0, (size_t)maps.slots * TH_DIRECT_FDS * sizeof(*seen_ops));
	snapshot(); /* processes that outlive the recording */
	for (unsigned int slot = 1; slot < slots_used(); slot++)
		maps.procs[slot].state = TH_FREE;
	sweep(false);
	losses_out();
}
