// SPDX-License-Identifier: Apache-2.0
/* Binary heap of slots by the time of their next event; at equal times the lower slot is first, so
 * that the order of events is deterministic. */
#include "sim.h"

#include <stdlib.h>

void heap_init(struct heap *h, int32_t slots)
{
	h->key = zeroed(slots, sizeof(*h->key));
	h->slot = zeroed(slots, sizeof(*h->slot));
	h->at = zeroed(slots, sizeof(*h->at));
	h->count = 0;
	for (int32_t i = 0; i < slots; i++)
		h->at[i] = NONE;
}

void heap_free(struct heap *h)
{
	free(h->key);
	free(h->slot);
	free(h->at);
}

static bool before(const struct heap *h, int32_t a, int32_t b)
{
	return h->key[a] < h->key[b] || (h->key[a] == h->key[b] && a < b);
}

static void put(struct heap *h, int32_t place, int32_t slot)
{
	h->slot[place] = slot;
	h->at[slot] = place;
}

static void up(struct heap *h, int32_t place)
{
	int32_t slot = h->slot[place];

	for (; place > 0 && before(h, slot, h->slot[(place - 1) / 2]); place = (place - 1) / 2)
		put(h, place, h->slot[(place - 1) / 2]);
	put(h, place, slot);
}

static void down(struct heap *h, int32_t place)
{
	int32_t slot = h->slot[place];

	for (;;) {
		int32_t child = 2 * place + 1;

		if (child >= h->count)
			break;
		if (child + 1 < h->count && before(h, h->slot[child + 1], h->slot[child]))
			child++;
		if (!before(h, h->slot[child], slot))
			break;
		put(h, place, h->slot[child]);
		place = child;
	}
	put(h, place, slot);
}

void heap_set(struct heap *h, int32_t slot, double key)
{
	double old = h->key[slot];

	h->key[slot] = key;
	if (h->at[slot] == NONE) {
		put(h, h->count, slot);
		up(h, h->count++);
	} else if (key < old) {
		up(h, h->at[slot]);
	} else if (key > old) {
		down(h, h->at[slot]);
	}
}

void heap_drop(struct heap *h, int32_t slot)
{
	int32_t place = h->at[slot];

	if (place == NONE)
		return;
	h->at[slot] = NONE;
	h->count--;
	if (place == h->count)
		return;
	put(h, place, h->slot[h->count]);
	up(h, place);
	down(h, h->at[h->slot[place]]);
}
