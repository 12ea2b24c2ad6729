// SPDX-License-Identifier: Apache-2.0
/* Active transfers, and the resources that they use. */
#include "sim.h"

#include <stdlib.h>

/* Tolerance: smaller changes, as a share of a rate or a capacity, are not propagated. */
#define FINE 1e-7
#define COARSE 5e-3
#define MANY 512 /* minimum number of slots for COARSE */

void fluid_init(struct fluid *f, int32_t resources, int32_t slots)
{
	f->resources = resources;
	f->slots = slots;
	f->tolerance = slots < MANY ? FINE : COARSE;
	f->res = zeroed(resources, sizeof(*f->res));
	f->flow = zeroed(slots, sizeof(*f->flow));
	f->inside = zeroed(resources, sizeof(*f->inside));
	f->border = zeroed(resources, sizeof(*f->border));
	f->level = zeroed(resources, sizeof(*f->level));
	f->member = zeroed(slots, sizeof(*f->member));
	f->n_inside = f->n_border = f->n_member = f->n_level = 0;
}

void fluid_free(struct fluid *f)
{
	for (int32_t i = 0; f->res && i < f->resources; i++)
		free(f->res[i].list);
	free(f->res);
	free(f->flow);
	free(f->inside);
	free(f->border);
	free(f->level);
	free(f->member);
}

bool fluid_changed(const struct fluid *f)
{
	return f->n_inside || f->n_member;
}

void flow_use(struct fluid *f, int32_t slot, int32_t resource, double share)
{
	struct flow *flow = &f->flow[slot];

	if (f->res[resource].capacity <= 0 || share <= 0)
		return;
	for (int32_t i = 0; i < flow->legs; i++)
		if (flow->leg[i].resource == resource) {
			flow->leg[i].share += share;
			return;
		}
	if (flow->legs == MAX_LEGS) /* impossible, due to the value of MAX_SERVERS */
		abort();
	flow->leg[flow->legs++] = (struct leg){.resource = resource, .share = share};
}

void take_in(struct fluid *f, int32_t resource)
{
	if (f->res[resource].state == INSIDE)
		return;
	f->res[resource].state = INSIDE;
	f->inside[f->n_inside++] = resource;
}

void add_member(struct fluid *f, int32_t slot)
{
	struct flow *flow = &f->flow[slot];

	if (flow->member)
		return;
	flow->member = true;
	f->member[f->n_member++] = slot;
	for (int32_t i = 0; i < flow->legs; i++) {
		int32_t id = flow->leg[i].resource;

		if (f->res[id].state == OUTSIDE) {
			f->res[id].state = BORDER;
			f->border[f->n_border++] = id;
		}
	}
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
	}
	add_member(f, slot);
	return true;
}

void flow_end(struct fluid *f, int32_t slot)
{
	struct flow *flow = &f->flow[slot];

	for (int32_t i = 0; i < flow->legs; i++) {
		int32_t id = flow->leg[i].resource;
		struct resource *r = &f->res[id];
		int32_t place = flow->leg[i].place, last = r->list[--r->count];

		if (r->limits > 0)
			take_in(f, id);
		r->used -= flow->rate * flow->leg[i].share;
		r->list[place] = last;
		f->flow[last >> LEG_BITS].leg[last & (MAX_LEGS - 1)].place = place;
	}
	if (flow->old_limit != NONE)
		f->res[flow->old_limit].limits--;
	flow->legs = 0;
	flow->rate = 0;
}
