// SPDX-License-Identifier: Apache-2.0
/* Transfers as fluids: the bottleneck resource is shared evenly by its transfers, what they leave
 * elsewhere by the others, and so on (max-min fairness). A transfer that uses a resource with share
 * s takes s times its rate of it. Only what is connected to a change is computed again.
 */
#include "sim.h"

#include <stdlib.h>

#define ALMOST_NOTHING 1e-12

void fluid_init(struct fluid *f, int32_t resources, int32_t slots)
{
	f->resources = resources;
	f->slots = slots;
	f->res = zeroed(resources, sizeof(*f->res));
	f->flow = zeroed(slots, sizeof(*f->flow));
	f->part = zeroed(resources, sizeof(*f->part));
	f->member = zeroed(slots, sizeof(*f->member));
	f->n_part = f->n_member = 0;
}

void fluid_free(struct fluid *f)
{
	for (int32_t i = 0; f->res && i < f->resources; i++)
		free(f->res[i].list);
	free(f->res);
	free(f->flow);
	free(f->part);
	free(f->member);
}

void flow_use(struct fluid *f, int32_t slot, int32_t resource, double share)
{
	struct flow *flow = &f->flow[slot];

	if (f->res[resource].capacity <= 0 || share < ALMOST_NOTHING / 1e9)
		return;
	for (int32_t i = 0; i < flow->legs; i++)
		if (flow->leg[i].resource == resource) {
			flow->leg[i].share += share;
			return;
		}
	if (flow->legs == MAX_LEGS) /* MAX_SERVERS is chosen so that this cannot be */
		abort();
	flow->leg[flow->legs++] = (struct leg){.resource = resource, .share = share};
}

static void touch(struct fluid *f, int32_t resource)
{
	if (f->res[resource].seen)
		return;
	f->res[resource].seen = true;
	f->part[f->n_part++] = resource;
}

bool flow_begin(struct fluid *f, int32_t slot, double bytes, double now)
{
	struct flow *flow = &f->flow[slot];

	flow->bytes = flow->left = bytes;
	flow->rate = 0;
	flow->since = now;
	flow->limit = flow->old_limit = NONE;
	if (flow->legs == 0)
		return false;
	for (int32_t i = 0; i < flow->legs; i++) {
		struct resource *r = &f->res[flow->leg[i].resource];

		if (r->count == r->room) {
			r->room = r->room ? 2 * r->room : 8;
			r->list = realloc(r->list, r->room * sizeof(*r->list));
			if (!r->list)
				no_memory();
		}
		flow->leg[i].place = r->count;
		r->list[r->count++] = (int32_t)((uint32_t)slot << LEG_BITS | (uint32_t)i);
		touch(f, flow->leg[i].resource);
	}
	return true;
}

void flow_end(struct fluid *f, int32_t slot)
{
	struct flow *flow = &f->flow[slot];

	for (int32_t i = 0; i < flow->legs; i++) {
		struct resource *r = &f->res[flow->leg[i].resource];
		int32_t place = flow->leg[i].place, last = r->list[--r->count];

		r->list[place] = last;
		f->flow[last >> LEG_BITS].leg[last & (MAX_LEGS - 1)].place = place;
		touch(f, flow->leg[i].resource);
	}
	flow->legs = 0;
	flow->rate = 0;
}

/* Everything that is connected to the touched resources. */
static void collect(struct fluid *f)
{
	f->n_member = 0;
	for (int32_t i = 0; i < f->n_part; i++) {
		struct resource *r = &f->res[f->part[i]];

		r->left = r->capacity;
		r->shares = 0;
		r->open = r->count;
		for (int32_t k = 0; k < r->count; k++) {
			int32_t slot = r->list[k] >> LEG_BITS;
			struct flow *flow = &f->flow[slot];

			r->shares += flow->leg[r->list[k] & (MAX_LEGS - 1)].share;
			if (flow->seen)
				continue;
			flow->seen = true;
			flow->fixed = false;
			f->member[f->n_member++] = slot;
			for (int32_t j = 0; j < flow->legs; j++)
				touch(f, flow->leg[j].resource);
		}
	}
}

/* The resource that gives its transfers least; those without open transfers leave the list. */
static int32_t tightest(struct fluid *f, int32_t *n)
{
	int32_t best = NONE;

	for (int32_t i = 0; i < *n;) {
		struct resource *r = &f->res[f->part[i]];

		if (r->open == 0) {
			int32_t gone = f->part[i];

			f->part[i] = f->part[--*n];
			f->part[*n] = gone;
			continue;
		}
		if (best == NONE || r->left * f->res[best].shares < f->res[best].left * r->shares)
			best = f->part[i];
		i++;
	}
	return best;
}

static void fix(struct fluid *f, struct flow *flow, double rate, int32_t limit)
{
	flow->fixed = true;
	flow->next = rate;
	flow->limit = limit;
	for (int32_t i = 0; i < flow->legs; i++) {
		struct resource *r = &f->res[flow->leg[i].resource];

		r->left -= rate * flow->leg[i].share;
		if (r->left < r->capacity * ALMOST_NOTHING)
			r->left = r->capacity * ALMOST_NOTHING;
		r->shares -= flow->leg[i].share;
		r->open--;
	}
}

void share_out(struct fluid *f)
{
	collect(f);
	int32_t n = f->n_part, best;

	while ((best = tightest(f, &n)) != NONE) {
		const struct resource *r = &f->res[best];
		double rate = r->left / r->shares;

		if (f->stream > 0 && rate >= f->stream)
			break;
		for (int32_t k = 0; k < r->count; k++) {
			struct flow *flow = &f->flow[r->list[k] >> LEG_BITS];

			if (!flow->fixed)
				fix(f, flow, rate, best);
		}
	}
	for (int32_t i = 0; i < f->n_member; i++) {
		struct flow *flow = &f->flow[f->member[i]];

		if (!flow->fixed)
			fix(f, flow, f->stream, NONE);
		flow->seen = false;
	}
	for (int32_t i = 0; i < f->n_part; i++)
		f->res[f->part[i]].seen = false;
	f->n_part = 0;
}
