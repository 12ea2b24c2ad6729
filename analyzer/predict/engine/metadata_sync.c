// SPDX-License-Identifier: Apache-2.0
/* The agent that keeps replicated registries alike: it asks each site for what changed there since
 * it last came, then tells each site what the others changed, one site after the other. */
#include "metadata.h"

#include <stdlib.h>

#define LEAST_ROUND 1e-3 /* seconds: the agent never spins */

static void grow(int32_t **list, int64_t *room, int64_t wanted)
{
	if (wanted <= *room)
		return;
	int64_t more = wanted < 1024 ? 1024 : 2 * wanted;
	int32_t *bigger = realloc(*list, more * sizeof(**list));

	if (!bigger)
		no_memory();
	*list = bigger;
	*room = more;
}

static int32_t target(const struct meta *m)
{
	return m->agent.step % m->w->sites;
}

/* From where it is to its next site. */
static void depart(struct meta *m, double when)
{
	m->agent.arrives = true;
	heap_set(&m->heap, m->workers, when + trip(m, m->agent.site, target(m)) / 2);
}

void entry_fresh(struct meta *m, int32_t entry, int32_t site)
{
	struct site *s = &m->site[site];
	struct agent *a = &m->agent;

	grow(&s->list, &s->room, (int64_t)s->fresh + 1);
	s->list[s->fresh++] = entry;
	if (m->heap.at[m->workers] != NONE)
		return;
	/* It rests since an empty round: its rounds went on, and the next one takes this along. */
	if (m->now > a->begun) {
		double rounds = (m->now - a->begun) / a->round;

		a->begun = m->now + (1 - (rounds - (int64_t)rounds)) * a->round;
	}
	depart(m, a->begun);
}

void agent_start(struct meta *m)
{
	m->agent.site = m->set[META_CENTRE];
	m->agent.begun = m->now;
	depart(m, m->now);
}

/* Take what is new at the site; the seconds that its registry and the agent spend on it. */
static double ask(struct meta *m, int32_t site)
{
	struct site *s = &m->site[site];
	struct agent *a = &m->agent;
	int32_t count = s->fresh;
	int64_t room = a->room;

	grow(&a->entry, &room, a->carried + count);
	room = a->room;
	grow(&a->from, &room, a->carried + count);
	a->room = room;
	for (int32_t i = 0; i < count; i++) {
		a->entry[a->carried] = s->list[i];
		a->from[a->carried++] = site;
	}
	s->fresh = 0;
	return m->set[META_LOOKUP_S] + count * m->set[META_SYNC_S];
}

static double tell(struct meta *m, int32_t site)
{
	const struct agent *a = &m->agent;
	int64_t count = 0;

	for (int64_t i = 0; i < a->carried; i++)
		count += a->from[i] != site;
	return count ? m->set[META_UPDATE_S] + count * m->set[META_SYNC_S] : 0;
}

static void told(struct meta *m, int32_t site)
{
	struct agent *a = &m->agent;

	for (int64_t i = 0; i < a->carried; i++) {
		int32_t entry = a->entry[i];

		if (a->from[i] == site || m->seen[entry] >> site & 1)
			continue;
		double late = m->now - m->when[entry];

		m->stale_sum += late;
		m->stale_count++;
		m->stale_most = late > m->stale_most ? late : m->stale_most;
		entry_seen(m, entry, site);
	}
}

/* The next step, once it is back; after an empty round it rests until something changes. */
static void next_step(struct meta *m, double back)
{
	struct agent *a = &m->agent;
	int32_t sites = m->w->sites;
	bool empty = ++a->step == sites && !a->carried;

	if (empty || a->step == 2 * sites) {
		a->step = 0;
		a->carried = 0;
		a->round = back - a->begun > LEAST_ROUND ? back - a->begun : LEAST_ROUND;
		a->begun += a->round;
		for (int32_t i = 0; empty && i < sites; i++)
			empty = !m->site[i].fresh;
		if (empty)
			return;
	}
	depart(m, a->step ? back : a->begun);
}

void agent_event(struct meta *m)
{
	struct agent *a = &m->agent;
	int32_t site = target(m);
	bool asking = a->step < m->w->sites;

	if (a->arrives) {
		a->arrives = false;
		heap_set(&m->heap, m->workers,
			 service(m, site, asking ? ask(m, site) : tell(m, site)));
		return;
	}
	heap_drop(&m->heap, m->workers);
	if (!asking)
		told(m, site);
	next_step(m, m->now + trip(m, a->site, site) / 2);
}
