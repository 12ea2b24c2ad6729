// SPDX-License-Identifier: Apache-2.0
/* Hash table of 64-bit keys with open addressing; it doubles when it is half full. */
#include "sim.h"

#include <stdlib.h>

#define FIRST_ROOM 1024

struct seen {
	struct entry *entry;
	size_t room, count;
};

struct seen *seen_new(void)
{
	struct seen *s = zeroed(1, sizeof(*s));

	s->room = FIRST_ROOM;
	s->entry = zeroed(s->room, sizeof(*s->entry));
	return s;
}

void seen_free(struct seen *s)
{
	if (!s)
		return;
	free(s->entry);
	free(s);
}

/* Return the entry of the key, or the free entry for it; key 0 marks a free entry. */
static struct entry *find(const struct seen *s, uint64_t key)
{
	size_t at = mix(key) & (s->room - 1);

	while (s->entry[at].key && s->entry[at].key != key)
		at = (at + 1) & (s->room - 1);
	return &s->entry[at];
}

static void grow(struct seen *s)
{
	struct seen old = *s;

	s->room *= 2;
	s->entry = zeroed(s->room, sizeof(*s->entry));
	for (size_t i = 0; i < old.room; i++)
		if (old.entry[i].key)
			*find(s, old.entry[i].key) = old.entry[i];
	free(old.entry);
}

struct entry *seen_at(struct seen *s, uint64_t key)
{
	struct entry *e = find(s, key);

	if (e->key)
		return e;
	if (2 * ++s->count > s->room) {
		grow(s);
		e = find(s, key);
	}
	e->key = key;
	return e;
}
