// SPDX-License-Identifier: Apache-2.0
/* Simulation of one run, from event to event. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_WINDOW 1e-9 /* seconds within which events are handled together */

_Noreturn void no_memory(void)
{
	fprintf(stderr, "tracehint-sim: out of memory\n");
	exit(3);
}

void *zeroed(size_t count, size_t size)
{
	void *found = calloc(count ? count : 1, size);

	if (!found)
		no_memory();
	return found;
}

static void capacities(struct sim *m)
{
	static const enum host_setting from[HOST_KINDS] = {HOST_OUT, HOST_IN, HOST_SETTINGS,
							   HOST_LOCAL, HOST_SETTINGS};
	struct resource *r = m->fluid.res;

	for (int32_t h = 0; h < m->s->hosts; h++) {
		for (int k = 0; k < HOST_KINDS; k++)
			if (from[k] != HOST_SETTINGS)
				r[h * HOST_KINDS + k].capacity = of_host(m, h, from[k]);
		r[h * HOST_KINDS + R_DISK].capacity = 1; /* seconds of work per second */
		r[h * HOST_KINDS + R_CLIENT].capacity = set(m, SET_CLIENT);
	}
	r[m->pools + POOL_SHARED].capacity = set(m, SET_SHARED);
	processors_init(m);
	for (int32_t i = 0; i < 2 * m->s->sites; i++)
		r[m->site_base + i].capacity = m->s->site[i];
	for (int32_t i = 0; i < (int32_t)set(m, SET_POOL); i++) {
		int32_t h = m->s->server[i];

		r[m->pools + POOL_OUT].capacity += of_host(m, h, HOST_OUT);
		r[m->pools + POOL_IN].capacity += of_host(m, h, HOST_IN);
		if (of_host(m, h, HOST_READ) > 0 || of_host(m, h, HOST_WRITE) > 0)
			r[m->pools + POOL_DISK].capacity += 1;
	}
}

static void hosts_init(struct sim *m)
{
	int32_t slots = 0;

	for (int32_t h = 0; h < m->s->hosts; h++) {
		m->host[h].free = (int32_t)of_host(m, h, HOST_CORES);
		m->first_slot[h] = slots;
		for (int32_t i = 0; i < m->host[h].free; i++)
			m->free_slot[slots + i] = slots + m->host[h].free - 1 - i;
		slots += m->host[h].free;
		m->server_on[h] = NONE;
		node_changed(m, h);
	}
	for (int32_t i = m->s->servers - 1; i >= 0; i--) {
		m->server_on[m->s->server[i]] = i;
		m->servers_at[site_of(m, m->s->server[i])]++;
		m->servers_in[(int32_t)of_host(m, m->s->server[i], HOST_MACHINE)]++;
	}
}

static void tasks_init(struct sim *m)
{
	const struct workload *w = m->w;

	for (int64_t i = 0; i < w->deps; i++)
		m->task[w->dep[i]].missing++;
	for (int32_t i = 0; i < w->tasks; i++)
		m->task[i].node = m->task[i].cause = NONE;
	for (int32_t i = 0; i < w->tasks; i++)
		if (!m->task[i].missing)
			make_ready(m, i);
}

void sim_init(struct sim *m, const struct workload *w, const struct scenario *s)
{
	memset(m, 0, sizeof(*m));
	m->w = w;
	m->s = s;
	m->random = mix((uint64_t)set(m, SET_SEED) + 1);
	for (int32_t h = 0; h < s->hosts; h++)
		m->slots += (int32_t)of_host(m, h, HOST_CORES);
	m->site_base = s->hosts * HOST_KINDS;
	m->pools = m->site_base + 2 * s->sites;
	m->machine_base = m->pools + POOL_KINDS;
	m->lane_base = m->machine_base + s->machines;
	fluid_init(&m->fluid, m->lane_base + lanes_for(m), m->slots);
	m->fluid.stream = set(m, SET_STREAM);
	heap_init(&m->heap, m->slots);
	m->file = zeroed(w->files, sizeof(*m->file));
	m->task = zeroed(w->tasks, sizeof(*m->task));
	m->slot = zeroed(m->slots, sizeof(*m->slot));
	for (int32_t i = 0; i < m->slots; i++)
		m->slot[i].leader = NONE;
	m->host = zeroed(s->hosts, sizeof(*m->host));
	m->meta_free = zeroed((size_t)set(m, SET_META_SERVERS), sizeof(*m->meta_free));
	m->server_free = zeroed(s->servers, sizeof(*m->server_free));
	m->score = zeroed(s->hosts, sizeof(*m->score));
	m->group = zeroed(s->groups, sizeof(*m->group));
	m->server_on = zeroed(s->hosts, sizeof(*m->server_on));
	m->servers_at = zeroed(s->sites, sizeof(*m->servers_at));
	m->servers_in = zeroed(s->machines, sizeof(*m->servers_in));
	m->first_slot = zeroed(s->hosts, sizeof(*m->first_slot));
	m->free_slot = zeroed(m->slots, sizeof(*m->free_slot));
	m->running = zeroed(s->hosts, sizeof(*m->running));
	m->queues = queues_new(m);
	m->seen = seen_new();
	capacities(m);
	hosts_init(m);
	place_init(m);
	tasks_init(m);
}

void sim_free(struct sim *m)
{
	void *all[] = {m->file,	       m->task,	     m->slot,	 m->host,      m->meta_free,
		       m->server_free, m->score,     m->group,	 m->server_on, m->servers_at,
		       m->first_slot,  m->free_slot, m->running, m->servers_in};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
	fluid_free(&m->fluid);
	heap_free(&m->heap);
	queues_free(m->queues);
	seen_free(m->seen);
}

static void take_cores(struct sim *m, int32_t node, int32_t cores)
{
	m->host[node].free -= cores;
	node_changed(m, node);
}

void start_task(struct sim *m, int32_t task, int32_t node)
{
	int32_t place = m->first_slot[node] + (int32_t)of_host(m, node, HOST_CORES) - 1;
	int32_t slot = m->free_slot[place - m->running[node]++];
	struct task_state *t = &m->task[task];

	t->node = node;
	t->start = m->now;
	t->spent[IN_QUEUE] += m->now - t->ready;
	m->slot[slot] = (struct slot){
		.task = task, .node = node, .op = m->w->op_begin[task], .leader = NONE};
	take_cores(m, node, cores_of(m, task));
	/* one start after the other; even an empty task ends by an event, so that starts never nest */
	m->dispatched = (m->dispatched > m->now ? m->dispatched : m->now) + set(m, SET_DISPATCH);
	wait_for(m, slot, IN_QUEUE, m->dispatched - m->now + set(m, SET_TASK));
}

static void finish_task(struct sim *m, int32_t slot)
{
	const struct workload *w = m->w;
	int32_t task = m->slot[slot].task, node = m->slot[slot].node;
	int32_t place = m->first_slot[node] + (int32_t)of_host(m, node, HOST_CORES) - 1;

	heap_drop(&m->heap, slot);
	m->task[task].end = m->now;
	m->free_slot[place - --m->running[node]] = slot;
	take_cores(m, node, -cores_of(m, task));
	m->done++;
	for (int64_t i = w->dep_begin[task]; i < w->dep_begin[task + 1]; i++) {
		struct task_state *child = &m->task[w->dep[i]];

		if (--child->missing)
			continue;
		child->cause = task;
		make_ready(m, w->dep[i]);
	}
}

/* Return the kind of time of a transfer that is limited by a resource. */
static enum spent kind_of(const struct sim *m, int32_t resource)
{
	if (resource == NONE)
		return IN_NETWORK;
	if (resource >= m->machine_base)
		return IN_COMPUTE;
	if (resource >= m->pools)
		return resource == m->pools + POOL_DISK ? IN_DISK : IN_NETWORK;
	if (resource >= m->site_base)
		return IN_NETWORK;
	int32_t kind = resource % HOST_KINDS;
	return kind == R_DISK || kind == R_LOCAL ? IN_DISK : IN_NETWORK;
}

/* Update the remaining bytes of a transfer and the time spent, up to now. */
static void update_progress(struct sim *m, int32_t slot, int32_t limit)
{
	struct flow *f = &m->fluid.flow[slot];
	double passed = m->now - f->since;

	f->left -= f->rate * passed;
	if (f->left < 0)
		f->left = 0;
	f->since = m->now;
	enum spent what = m->slot[slot].works ? m->slot[slot].waits : kind_of(m, limit);
	m->task[m->slot[slot].task].spent[what] += passed;
}

static void new_rates(struct sim *m)
{
	struct fluid *f = &m->fluid;

	if (!fluid_changed(f))
		return;
	share_out(f);
	for (int32_t i = 0; i < f->n_member; i++) {
		struct flow *flow = &f->flow[f->member[i]];

		if (flow->next == flow->rate && flow->limit == flow->old_limit)
			continue;
		update_progress(m, f->member[i], flow->old_limit);
		heap_set(&m->heap, f->member[i], m->now + flow->left / flow->next);
	}
	fluid_done(f);
}

/* Handle the end of a slot's transfer or wait. */
static void handle_event(struct sim *m, int32_t slot)
{
	struct slot *s = &m->slot[slot];

	if (s->moves) {
		update_progress(m, slot, m->fluid.flow[slot].old_limit);
		transfer_end(m, slot);
		s->moves = s->works = false;
	} else {
		m->task[s->task].spent[s->waits] += m->now - s->begun;
	}
	if (s->until > m->now) {
		wait_for(m, slot, s->waits, s->until - m->now);
		s->until = 0;
		return;
	}
	if (!go_on(m, slot))
		finish_task(m, slot);
	else if (s->moves)
		heap_drop(&m->heap, slot); /* it has no rate yet */
}

void sim_run(struct sim *m)
{
	dispatch(m);
	while (m->heap.count) {
		double until = m->heap.key[m->heap.slot[0]];

		if (until > m->now)
			m->now = until;
		until = m->now + EVENT_WINDOW;
		while (m->heap.count && m->heap.key[m->heap.slot[0]] <= until)
			handle_event(m, m->heap.slot[0]);
		dispatch(m);
		new_rates(m);
	}
	for (int32_t h = 0; h < m->s->hosts; h++)
		take_cores(m, h, 0);
}
