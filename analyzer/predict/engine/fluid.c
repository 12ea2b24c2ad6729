// SPDX-License-Identifier: Apache-2.0
/* Transfers as fluids: the bottleneck resource is shared evenly by its transfers, what they leave
 * elsewhere by the others, and so on (max-min fairness). A transfer that uses a resource with share
 * s takes s times its rate of it.
 *
 * Only what a change touches is computed again. It begins with the new transfers and with those that
 * a resource limits from which a transfer went; all others keep their rates. Where the new rates
 * would take from another transfer, that one is computed as well; where they leave something of a
 * full resource, so are those that it limits; until nothing moves by more than the tolerance.
 */
#include "sim.h"

#include <stdlib.h>

#define ALMOST_NOTHING 1e-12
/* Changes, as a share of a rate or a resource, that are not followed further. */
#define FINE 1e-7
#define COARSE 5e-3
#define MANY 512 /* slots from which on COARSE counts */

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
	if (flow->legs == MAX_LEGS) /* MAX_SERVERS is chosen so that this cannot be */
		abort();
	flow->leg[flow->legs++] = (struct leg){.resource = resource, .share = share};
}

static void take_in(struct fluid *f, int32_t resource)
{
	if (f->res[resource].state == INSIDE)
		return;
	f->res[resource].state = INSIDE;
	f->inside[f->n_inside++] = resource;
}

static void add_member(struct fluid *f, int32_t slot)
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

/* All transfers that the resources inside limit. */
static void expand(struct fluid *f, int32_t *done)
{
	for (; *done < f->n_inside; ++*done) {
		const struct resource *r = &f->res[f->inside[*done]];

		for (int32_t k = 0; k < r->count; k++)
			if (f->flow[r->list[k] >> LEG_BITS].old_limit == f->inside[*done])
				add_member(f, r->list[k] >> LEG_BITS);
	}
}

static void sift(struct fluid *f, int32_t place)
{
	struct level moved = f->level[place];

	for (;;) {
		int32_t child = 2 * place + 1;

		if (child >= f->n_level)
			break;
		if (child + 1 < f->n_level && f->level[child + 1].rate < f->level[child].rate)
			child++;
		if (f->level[child].rate >= moved.rate)
			break;
		f->level[place] = f->level[child];
		place = child;
	}
	f->level[place] = moved;
}

static void ready(struct fluid *f, const int32_t *list, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		struct resource *r = &f->res[list[i]];

		r->left = r->capacity - r->used;
		r->shares = 0;
		r->open = 0;
	}
}

static void levels(struct fluid *f, const int32_t *list, int32_t n, enum state state)
{
	for (int32_t i = 0; i < n; i++) {
		struct resource *r = &f->res[list[i]];

		if (r->state != state || !r->open) /* a resource can be in both lists */
			continue;
		if (r->left < r->capacity * ALMOST_NOTHING)
			r->left = r->capacity * ALMOST_NOTHING;
		f->level[f->n_level++] = (struct level){r->left / r->shares, list[i]};
	}
}

/* What each resource has for the members, and the heap of what it gives each. */
static void prepare(struct fluid *f)
{
	ready(f, f->border, f->n_border);
	ready(f, f->inside, f->n_inside);
	for (int32_t i = 0; i < f->n_member; i++) {
		struct flow *flow = &f->flow[f->member[i]];

		flow->fixed = false;
		for (int32_t k = 0; k < flow->legs; k++) {
			struct resource *r = &f->res[flow->leg[k].resource];

			r->left += flow->rate * flow->leg[k].share;
			r->shares += flow->leg[k].share;
			r->open++;
		}
	}
	f->n_level = 0;
	levels(f, f->border, f->n_border, BORDER);
	levels(f, f->inside, f->n_inside, INSIDE);
	for (int32_t i = f->n_level / 2 - 1; i >= 0; i--)
		sift(f, i);
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

/* The resource that gives its members least, and how much; NONE: all have their rate. What a
 * resource gives only grows while others get theirs, so an old entry is put back. */
static int32_t tightest(struct fluid *f, double *rate)
{
	while (f->n_level) {
		struct level *top = &f->level[0];
		const struct resource *r = &f->res[top->resource];
		double now = r->open ? r->left / r->shares : 0;

		if (r->open && now <= top->rate * (1 + ALMOST_NOTHING)) {
			*rate = now;
			return top->resource;
		}
		if (r->open)
			top->rate = now;
		else
			*top = f->level[--f->n_level];
		sift(f, 0);
	}
	return NONE;
}

/* Make members of the transfers of a resource that have more than it gives its members. */
static bool outsiders(struct fluid *f, const struct resource *r, double rate)
{
	int32_t before = f->n_member;

	for (int32_t k = 0; k < r->count; k++) {
		const struct flow *flow = &f->flow[r->list[k] >> LEG_BITS];

		if (!flow->member && flow->rate > rate * (1 + f->tolerance))
			add_member(f, r->list[k] >> LEG_BITS);
	}
	return f->n_member > before;
}

/* False: there are new members. */
static bool fill(struct fluid *f)
{
	int32_t best;
	double rate;

	while ((best = tightest(f, &rate)) != NONE) {
		const struct resource *r = &f->res[best];

		if (f->stream > 0 && rate >= f->stream)
			break;
		if (outsiders(f, r, rate))
			return false;
		for (int32_t k = 0; k < r->count; k++) {
			struct flow *flow = &f->flow[r->list[k] >> LEG_BITS];

			if (flow->member && !flow->fixed)
				fix(f, flow, rate, best);
		}
	}
	for (int32_t i = 0; i < f->n_member; i++)
		if (!f->flow[f->member[i]].fixed)
			fix(f, &f->flow[f->member[i]], f->stream, NONE);
	return true;
}

/* Take in full resources of which a member now takes less; false: there are none. */
static bool freed(struct fluid *f)
{
	int32_t before = f->n_inside;

	for (int32_t i = 0; i < f->n_member; i++) {
		const struct flow *flow = &f->flow[f->member[i]];

		for (int32_t k = 0; k < flow->legs; k++) {
			const struct resource *r = &f->res[flow->leg[k].resource];
			double less = (flow->rate - flow->next) * flow->leg[k].share;

			if (r->limits > 0 && less > r->capacity * f->tolerance)
				take_in(f, flow->leg[k].resource);
		}
	}
	return f->n_inside > before;
}

void share_out(struct fluid *f)
{
	int32_t done = 0;

	do {
		expand(f, &done);
		prepare(f);
	} while (!fill(f) || freed(f));
}

void fluid_done(struct fluid *f)
{
	for (int32_t i = 0; i < f->n_member; i++) {
		struct flow *flow = &f->flow[f->member[i]];

		for (int32_t k = 0; k < flow->legs; k++)
			f->res[flow->leg[k].resource].used +=
				(flow->next - flow->rate) * flow->leg[k].share;
		if (flow->old_limit != NONE)
			f->res[flow->old_limit].limits--;
		if (flow->limit != NONE)
			f->res[flow->limit].limits++;
		flow->old_limit = flow->limit;
		flow->rate = flow->next;
		flow->member = false;
	}
	for (int32_t i = 0; i < f->n_inside; i++)
		f->res[f->inside[i]].state = OUTSIDE;
	for (int32_t i = 0; i < f->n_border; i++)
		f->res[f->border[i]].state = OUTSIDE;
	f->n_inside = f->n_border = f->n_member = 0;
}
