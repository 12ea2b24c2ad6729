// SPDX-License-Identifier: Apache-2.0
/* Transfers as fluids: the bottleneck resource is shared evenly by its transfers, the capacity that
 * they leave at other resources by the other transfers, and so on (max-min fairness). A transfer
 * that uses a resource with share s uses s times its rate of it.
 *
 * Only rates affected by a change are recomputed: first new transfers, and transfers limited by a
 * resource that a transfer has left. If the new rates reduce another transfer's rate, that one is
 * added; if they free part of a full resource, the transfers that it limits are added; until no
 * rate changes by more than the tolerance.
 */
#include "sim.h"

#define ALMOST_NOTHING 1e-12

/* Add all transfers that are limited by the resources inside. */
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

static void reset_resources(struct fluid *f, const int32_t *list, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		struct resource *r = &f->res[list[i]];

		r->left = r->capacity - r->used;
		r->shares = 0;
		r->open = 0;
	}
}

static void push_levels(struct fluid *f, const int32_t *list, int32_t n, enum state state)
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

/* Compute the capacity of each resource for the members, and the heap of their rates. */
static void prepare(struct fluid *f)
{
	reset_resources(f, f->border, f->n_border);
	reset_resources(f, f->inside, f->n_inside);
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
	push_levels(f, f->border, f->n_border, BORDER);
	push_levels(f, f->inside, f->n_inside, INSIDE);
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

/* Return the resource that offers its members the lowest rate; NONE: all members have a rate. Rates
 * only grow while members of other resources are fixed, so outdated entries are reinserted. */
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

/* Add the transfers of a resource whose rate is higher than the one it offers its members. */
static bool add_outsiders(struct fluid *f, const struct resource *r, double rate)
{
	int32_t before = f->n_member;

	for (int32_t k = 0; k < r->count; k++) {
		const struct flow *flow = &f->flow[r->list[k] >> LEG_BITS];

		if (!flow->member && flow->rate > rate * (1 + f->tolerance))
			add_member(f, r->list[k] >> LEG_BITS);
	}
	return f->n_member > before;
}

/* Set the rates of all members; false: members were added. */
static bool fix_rates(struct fluid *f)
{
	int32_t best;
	double rate;

	while ((best = tightest(f, &rate)) != NONE) {
		const struct resource *r = &f->res[best];

		if (f->stream > 0 && rate >= f->stream)
			break;
		if (add_outsiders(f, r, rate))
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

/* Take in limiting resources of which a member now uses less; false: there are none. */
static bool take_in_freed(struct fluid *f)
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
	} while (!fix_rates(f) || take_in_freed(f));
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
