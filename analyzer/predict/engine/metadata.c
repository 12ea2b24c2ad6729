// SPDX-License-Identifier: Apache-2.0
/* The events of a metadata simulation: cores run tasks, operations visit registries. */
#include "metadata.h"

#include <stdio.h>
#include <stdlib.h>

double trip(const struct meta *m, int32_t from, int32_t to)
{
	return m->w->round_trip[(size_t)from * m->w->sites + to];
}

/* First come, first served: when the registry is done with it. */
double service(struct meta *m, int32_t site, double seconds)
{
	struct site *s = &m->site[site];
	double begin = s->free > m->now ? s->free : m->now;

	s->busy += seconds;
	s->free = begin + seconds;
	return s->free;
}

/* The registry that a leg of a worker's operation goes to; NONE: the operation is done. */
static int32_t registry(const struct meta *m, const struct worker *k)
{
	int32_t entry = m->w->op_entry[k->op], home = m->w->home[entry];

	switch ((enum strategy)m->set[META_STRATEGY]) {
	case CENTRAL:
		return k->leg ? NONE : (int32_t)m->set[META_CENTRE];
	case REPLICATED:
		return k->leg ? NONE : k->site;
	case DECENTRAL:
		return k->leg ? NONE : home;
	default:
		break;
	}
	if (!k->leg)
		return k->site;
	bool found = m->w->known[entry] || m->made[entry] == k->site;
	bool enough = m->w->op_kind[k->op] == META_LOOKUP && found;
	return k->leg > 1 || home == k->site || enough ? NONE : home;
}

static void start(struct meta *m, int32_t task, int32_t site)
{
	int32_t number = m->idle[site];
	struct worker *k = &m->worker[number];

	m->idle[site] = k->parked;
	m->site[site].cores--;
	*k = (struct worker){.task = task, .site = site, .op = m->w->op_begin[task]};
	k->phase = BEGINS;
	heap_set(&m->heap, number, m->now);
}

/* The site with most free cores, or where least tasks wait. */
static int32_t emptiest(const struct meta *m, int32_t task)
{
	int32_t best = NONE, sites = m->w->sites;
	int32_t first = mix((uint64_t)m->set[META_SEED] << 32 | task) % sites;

	for (int32_t i = 0; i < sites; i++) {
		int32_t site = (first + i) % sites;
		const struct site *s = &m->site[site], *b = &m->site[best == NONE ? site : best];

		if (!m->w->cores[site])
			continue;
		if (best == NONE || s->cores - s->waiting > b->cores - b->waiting)
			best = site;
	}
	return best;
}

static void queue_task(struct meta *m, int32_t task)
{
	int32_t pin = m->w->pin[task];
	int32_t site = pin != NONE ? pin : m->set[META_NEAR] ? m->near[task] : NONE;

	if (site == NONE || (pin == NONE && !m->site[site].cores))
		site = emptiest(m, task);
	struct site *s = &m->site[site];
	if (s->cores) {
		start(m, task, site);
		return;
	}
	m->next[task] = NONE;
	if (s->waiting++)
		m->next[s->last] = task;
	else
		s->first = task;
	s->last = task;
}

static int32_t take(struct meta *m, int32_t site)
{
	struct site *s = &m->site[site];
	int32_t task = s->first;

	s->first = m->next[task];
	s->waiting--;
	return task;
}

/* A core is free: a task that waits here, else the first of the longest queue that may move. */
static void fill(struct meta *m, int32_t site)
{
	int32_t longest = site;

	for (int32_t i = 0; !m->site[site].waiting && i < m->w->sites; i++)
		if (m->site[i].waiting > m->site[longest].waiting &&
		    m->w->pin[m->site[i].first] == NONE)
			longest = i;
	if (m->site[longest].waiting)
		start(m, take(m, longest), site);
}

static void finish(struct meta *m, int32_t number)
{
	struct worker *k = &m->worker[number];
	int32_t task = k->task, site = k->site;

	m->done++;
	k->parked = m->idle[site];
	m->idle[site] = number;
	m->site[site].cores++;
	for (int64_t i = m->w->dep_begin[task]; i < m->w->dep_begin[task + 1]; i++) {
		int32_t after = m->w->dep[i];

		m->near[after] = site;
		if (!--m->missing[after])
			queue_task(m, after);
	}
	if (m->site[site].cores)
		fill(m, site);
}

static void depart(struct meta *m, int32_t number, int32_t to)
{
	struct worker *k = &m->worker[number];

	k->phase = ARRIVES;
	k->at = to; /* what is known here may change while it is on its way */
	m->site[k->site].abroad += to != k->site;
	heap_set(&m->heap, number, m->now + trip(m, k->site, to) / 2);
}

/* The worker's next operation, or the end of its task. */
static void next_operation(struct meta *m, int32_t number)
{
	struct worker *k = &m->worker[number];

	k->leg = 0;
	if (k->op == m->w->op_begin[k->task + 1]) {
		heap_drop(&m->heap, number);
		finish(m, number);
	} else if (m->w->op_kind[k->op] == META_COMPUTE) {
		k->phase = COMPUTED;
		heap_set(&m->heap, number, m->now + m->w->op_seconds[k->op]);
	} else {
		depart(m, number, registry(m, k));
	}
}

/* An entry is changed at the registry where the worker's operation is. */
static void change(struct meta *m, const struct worker *k, int32_t at, double when)
{
	int32_t entry = m->w->op_entry[k->op];

	if (!m->w->known[entry] && m->made[entry] == NONE) {
		m->made[entry] = k->site;
		m->when[entry] = when;
		m->seen[entry] = (uint64_t)1 << at;
	}
	if (m->set[META_STRATEGY] == REPLICATED)
		entry_fresh(m, entry, at);
}

/* Replicated: made elsewhere, and not known here yet. */
static bool unseen(const struct meta *m, int32_t entry, int32_t at)
{
	return m->set[META_STRATEGY] == REPLICATED && m->made[entry] != NONE &&
	       !(m->seen[entry] >> at & 1);
}

void entry_seen(struct meta *m, int32_t entry, int32_t site)
{
	int32_t *link = &m->parked[entry];

	m->seen[entry] |= (uint64_t)1 << site;
	while (*link != NONE) {
		int32_t number = *link;
		struct worker *k = &m->worker[number];

		if (k->site != site) {
			link = &k->parked;
			continue;
		}
		*link = k->parked;
		k->phase = ARRIVES;
		heap_set(&m->heap, number, m->now);
	}
}

static void arrive(struct meta *m, int32_t number)
{
	struct worker *k = &m->worker[number];
	int32_t at = k->at, entry = m->w->op_entry[k->op];
	bool looks = m->w->op_kind[k->op] == META_LOOKUP;
	double end = service(m, at, m->set[looks ? META_LOOKUP_S : META_UPDATE_S]);

	m->site[at].served++;
	if (looks && unseen(m, entry, at)) {
		heap_drop(&m->heap, number);
		k->parked = m->parked[entry];
		m->parked[entry] = number;
		return;
	}
	if (!looks && !k->leg)
		change(m, k, at, end);
	k->phase = RETURNS;
	heap_set(&m->heap, number, end + trip(m, k->site, at) / 2);
}

static void operation_done(struct meta *m)
{
	m->ops++;
	for (int64_t i = (m->ops - 1) * TENTHS / m->all_ops; i < m->ops * TENTHS / m->all_ops; i++)
		m->tenth[i] = m->now;
}

static void worker_event(struct meta *m, int32_t number)
{
	struct worker *k = &m->worker[number];

	switch (k->phase) {
	case ARRIVES:
		arrive(m, number);
		return;
	case RETURNS:
		k->leg++;
		int32_t to = registry(m, k);
		if (to != NONE) {
			depart(m, number, to);
			return;
		}
		operation_done(m);
		k->op++;
		break;
	case COMPUTED:
		k->op++;
		break;
	case BEGINS:
		break;
	}
	next_operation(m, number);
}

static void meta_init(struct meta *m, const struct meta_work *w, const double *set)
{
	*m = (struct meta){.w = w, .set = set};
	for (int32_t s = 0; s < w->sites; s++) {
		m->site[s].cores = w->cores[s];
		m->workers += w->cores[s];
	}
	m->worker = zeroed(m->workers, sizeof(*m->worker));
	for (int32_t s = 0, at = 0; s < w->sites; s++) {
		m->idle[s] = NONE;
		for (int32_t i = 0; i < w->cores[s]; i++, at++) {
			m->worker[at].parked = m->idle[s];
			m->idle[s] = at;
		}
	}
	heap_init(&m->heap, m->workers + 1);
	m->missing = zeroed(w->tasks, sizeof(*m->missing));
	m->near = zeroed(w->tasks, sizeof(*m->near));
	m->next = zeroed(w->tasks, sizeof(*m->next));
	m->made = zeroed(w->entries, sizeof(*m->made));
	m->parked = zeroed(w->entries, sizeof(*m->parked));
	m->when = zeroed(w->entries, sizeof(*m->when));
	m->seen = zeroed(w->entries, sizeof(*m->seen));
	for (int32_t i = 0; i < w->tasks; i++)
		m->near[i] = NONE;
	for (int32_t i = 0; i < w->entries; i++)
		m->made[i] = m->parked[i] = NONE;
	for (int64_t i = 0; i < w->deps; i++)
		m->missing[w->dep[i]]++;
	for (int64_t i = 0; i < w->ops; i++)
		m->all_ops += w->op_kind[i] != META_COMPUTE;
}

static void meta_free(struct meta *m)
{
	for (int32_t s = 0; s < m->w->sites; s++)
		free(m->site[s].list);
	free(m->agent.entry);
	free(m->agent.from);
	free(m->worker);
	free(m->missing);
	free(m->near);
	free(m->next);
	free(m->made);
	free(m->parked);
	free(m->when);
	free(m->seen);
	heap_free(&m->heap);
}

static void meta_run(struct meta *m)
{
	for (int32_t i = 0; i < m->w->tasks; i++)
		if (!m->missing[i])
			queue_task(m, i);
	if (m->set[META_STRATEGY] == REPLICATED)
		agent_start(m);
	while (m->heap.count && m->done < m->w->tasks) {
		int32_t slot = m->heap.slot[0];

		m->now = m->heap.key[slot];
		if (slot == m->workers)
			agent_event(m);
		else
			worker_event(m, slot);
	}
}

/* The answer: seconds, tasks done, operations, staleness (mean, most); the time of each tenth of
 * the operations; and by site: operations served, seconds busy, round trips to other sites. */
static int meta_answer(const struct meta *m)
{
	double mean = m->stale_count ? m->stale_sum / m->stale_count : 0;
	double head[5] = {m->now, m->done, m->ops, mean, m->stale_most};
	bool good = fwrite(head, sizeof(head), 1, stdout) == 1 &&
		    fwrite(m->tenth, sizeof(m->tenth), 1, stdout) == 1;

	for (int32_t s = 0; good && s < m->w->sites; s++) {
		const struct site *site = &m->site[s];
		double row[3] = {site->served, site->busy, site->abroad};

		good = fwrite(row, sizeof(row), 1, stdout) == 1;
	}
	return good ? 0 : -1;
}

int metadata(struct file *f)
{
	struct meta_work w;
	const double *set;
	int found;

	if (meta_work_read(&w, f))
		return 2;
	while ((found = meta_settings_read(&set, &w, f)) == 1) {
		struct meta m;

		meta_init(&m, &w, set);
		meta_run(&m);
		int failed = meta_answer(&m);
		meta_free(&m);
		if (failed) {
			complain("cannot be written", "the answer");
			return 3;
		}
	}
	return found ? 2 : 0;
}
