// SPDX-License-Identifier: Apache-2.0
/* Values of the settings of a file, with the group's name (from captures) or the host's name. */
#include "table.h"

#define CUT (TAG_MAX_GROUP - 9) /* characters before the checksum of a name that was changed */

struct uts { /* of the system call uname */
	char sysname[65], nodename[65], release[65], version[65], machine[65], domainname[65];
};

static bool plain(char c)
{
	char lower = c | 0x20;

	return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '_' || c == '.' ||
	       c == ':' || c == '-';
}

/* Return the size of the character that begins here: 1 for a byte that is not UTF-8. */
static uint32_t character(const uint8_t *s, uint32_t left)
{
	uint32_t size = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	uint8_t low = 0x80, high = 0xbf;

	if (s[0] < 0xc2 || s[0] > 0xf4 || size > left)
		return 1;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	for (uint32_t i = 1; i < size; i++, low = 0x80, high = 0xbf)
		if (s[i] < low || s[i] > high)
			return 1;
	return size;
}

/* A group's name under construction: the same as `safe_name` of hintgen/hints/vocabulary.py. */
struct group {
	char *out;
	uint32_t length, crc;
	bool changed;
};

static void put(struct group *g, char c)
{
	if (g->length == TAG_MAX_GROUP)
		g->changed = true;
	else
		g->out[g->length++] = c;
}

static void add(struct group *g, const char *text, uint32_t size, bool letters)
{
	for (uint32_t i = 0; i < size;) {
		uint32_t n = character((const uint8_t *)text + i, size - i);
		bool digit = text[i] >= '0' && text[i] <= '9';

		if (digit && letters) { /* each run of digits is one # */
			while (i + n < size && text[i + n] >= '0' && text[i + n] <= '9')
				n++;
			g->crc = tag_crc(g->crc, "#", 1);
		} else {
			g->crc = tag_crc(g->crc, text + i, n);
		}
		bool stays = n == 1 && plain(text[i]) && !(digit && letters);

		put(g, stays ? text[i] : '_');
		g->changed |= !stays;
		i += n;
	}
}

static void finish_name(struct group *g)
{
	static const char digits[] = "0123456789abcdef";

	if (g->changed || !g->length) {
		g->length = g->length < CUT ? g->length : CUT;
		g->out[g->length++] = '-';
		for (int shift = 28; shift >= 0; shift -= 4)
			g->out[g->length++] = digits[g->crc >> shift & 15];
	}
	g->out[g->length] = 0;
}

static bool group_name(const struct tag_table *t, const struct tag_set *set,
		       const struct tag_match *m, const char *name, char *out, uint32_t *length)
{
	struct group g = {.out = out};
	const char *prefix = tag_rows(t, set->prefix.at, set->prefix.size, 1);
	const uint32_t *captures =
		tag_rows(t, set->captures, set->capture_count, sizeof(*captures));

	if (!prefix || !captures)
		return false;
	add(&g, prefix, set->prefix.size, false);
	for (uint32_t i = 0; i < set->capture_count && i < TAG_MAX_HOLES; i++) {
		const struct tag_choice *c = &m->caught[captures[i]];

		if (captures[i] >= m->caught_count)
			continue;
		add(&g, "-", 1, false);
		add(&g, name + c->start, c->end - c->start, set->group == 2);
	}
	finish_name(&g);
	*length = g.length;
	return true;
}

const struct tag_setting *tag_settings(const struct tag_table *t, const struct tag_match *m,
				       const char *name, char *group, uint32_t *count)
{
	const struct tag_set *sets = (const void *)(t->base + t->header->sets.at);
	const struct tag_section *ways;
	uint32_t length = 0, way = 0;

	if (m->set >= t->header->sets.count)
		return NULL;
	const struct tag_set *set = &sets[m->set];

	group[0] = 0;
	ways = tag_rows(t, set->way_at, set->ways, sizeof(*ways));
	if (!ways || !set->ways)
		return NULL;
	if (set->group && !group_name(t, set, m, name, group, &length))
		return NULL;
	if (set->ways > 1)
		way = tag_crc(0, group, length) % set->ways;
	*count = ways[way].count;
	return tag_rows(t, ways[way].at, ways[way].count, sizeof(struct tag_setting));
}

static long append(const struct tag_table *t, struct tag_text text, char *out, uint32_t at)
{
	const char *from = tag_rows(t, text.at, text.size, 1);

	if (!from || text.size > TAG_MAX_VALUE || at + text.size > TAG_MAX_VALUE)
		return -1;
	th_copy(out + at, from, text.size);
	return at + text.size;
}

/* Write the short name of this host; return its length. */
static uint32_t host_name(char *out)
{
	struct uts *u = (void *)out; /* `out` is large enough */
	uint32_t n = 0;

	if (th_failed(th_sys(__NR_uname, u)))
		return 0;
	while (n < sizeof(u->nodename) && u->nodename[n] && u->nodename[n] != '.') {
		out[n] = u->nodename[n];
		n++;
	}
	return n;
}

long tag_value(const struct tag_table *t, const struct tag_setting *s, const char *group, char *out)
{
	long at = append(t, s->value, out, 0);

	if (at < 0)
		return at;
	if (s->flags & TAG_GROUP) {
		uint32_t n = th_len(group);

		th_copy(out + at, group, n);
		at += n;
	} else if (s->flags & TAG_HOST) {
		at += host_name(out + at);
	}
	return append(t, s->tail, out, at);
}
