// SPDX-License-Identifier: Apache-2.0
/* Tasks of one node that read the same file at the same time share the rest of the first task's
 * read, except for the bytes that each client reads ahead. Bytes that were read before they joined
 * they fetch themselves, unless the node still has them in its cache. */
#include "sim.h"

#include <math.h>

#define SHORT_AHEAD (1.0 / 3) /* maximum share of a read that a client reads ahead */

static struct entry *entry_of(struct sim *m, const struct span *s)
{
	return seen_at(m->seen, ((uint64_t)s->node + 1) << 32 | (uint64_t)s->file);
}

/* Return the bytes of its operation that a slot has received so far. */
static double progress(const struct sim *m, int32_t slot)
{
	const struct flow *f = &m->fluid.flow[slot];

	return m->slot[slot].sent - f->left + f->rate * (m->now - f->since);
}

/* Whether the current read of a slot includes all of the span. */
static bool covers_span(const struct sim *m, int32_t slot, const struct span *s)
{
	const struct workload *w = m->w;
	const struct slot *l = &m->slot[slot];
	int64_t op = l->op;

	return l->moves && l->node == s->node && op < w->op_begin[l->task + 1] &&
	       w->op_kind[op] == OP_READ && w->op_file[op] == s->file &&
	       w->op_start[op] <= s->start && w->op_start[op] + w->op_length[op] >= s->end;
}

/* Whether the node's cache can hold all bytes of the reads in progress on it. */
static bool keeps_all(const struct sim *m, int32_t node)
{
	int32_t first = m->first_slot[node], n = (int32_t)of_host(m, node, HOST_CORES);
	double moved = 0;

	if (set(m, SET_CLIENT_CACHE) <= 0)
		return false;
	for (int32_t i = first; i < first + n; i++)
		moved += m->slot[i].moves ? progress(m, i) : 0;
	return moved <= of_host(m, node, HOST_CACHE);
}

double join_read(struct sim *m, int32_t slot, const struct span *s)
{
	struct entry *e = entry_of(m, s);
	int32_t leader = e->reader - 1;

	if (leader < 0 || leader == slot || !covers_span(m, leader, s)) {
		e->reader = slot + 1;
		return s->bytes;
	}
	double ahead =
		progress(m, leader) - (double)(s->start - m->w->op_start[m->slot[leader].op]);
	bool keeps = keeps_all(m, s->node);
	double most = s->bytes * SHORT_AHEAD, own = set(m, SET_AHEAD);
	double fetch = (keeps || ahead < 0 ? 0 : ahead) + (own < most ? own : most);
	double missing = keeps && ahead > 0 ? s->bytes - ahead : s->bytes;

	if (fetch >= missing && !keeps) { /* nothing is left to share */
		e->reader = slot + 1;
		return s->bytes;
	}
	m->slot[slot].leader = leader;
	m->slot[leader].followers++;
	return fetch < missing ? fetch : missing > 0 ? missing : 0;
}

bool join_wait(struct sim *m, int32_t slot)
{
	if (m->slot[slot].leader == NONE)
		return false;
	wait_for(m, slot, IN_NETWORK, INFINITY); /* until join_end() of the leader */
	return true;
}

void join_end(struct sim *m, int32_t slot)
{
	struct slot *l = &m->slot[slot];
	int32_t first = m->first_slot[l->node], n = (int32_t)of_host(m, l->node, HOST_CORES);

	for (int32_t i = first; l->followers > 0 && i < first + n; i++) {
		if (m->slot[i].leader != slot)
			continue;
		m->slot[i].leader = NONE;
		l->followers--;
		if (!m->slot[i].moves)
			heap_set(&m->heap, i, m->now);
	}
}
