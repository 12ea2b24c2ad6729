// SPDX-License-Identifier: Apache-2.0
/* Looks a name up in the rule table: by its exact text, else by rules whose two ends match. */
#include "table.h"

static const uint32_t crc_nibble[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
	0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
	0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

/* The same as zlib's: start with 0, and pass each result on with the next part. */
uint32_t tag_crc(uint32_t crc, const void *data, uint32_t size)
{
	const uint8_t *byte = data;

	crc = ~crc;
	for (uint32_t i = 0; i < size; i++) {
		crc ^= byte[i];
		crc = crc >> 4 ^ crc_nibble[crc & 15];
		crc = crc >> 4 ^ crc_nibble[crc & 15];
	}
	return ~crc;
}

const void *tag_rows(const struct tag_table *t, uint32_t at, uint32_t count, uint32_t size)
{
	if (at > t->size || (uint64_t)count * size > t->size - at || (size > 1 && at & 3))
		return NULL;
	return t->base + at;
}

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

bool tag_use(struct tag_table *t, const void *base, size_t size)
{
	const struct tag_header *h = base;

	t->base = base;
	t->size = (uint32_t)size;
	t->header = h;
	return size >= sizeof(*h) && size <= UINT32_MAX && th_same(h->magic, TAG_MAGIC, 8) &&
	       h->size == size && power_of_two(h->exact.count) && power_of_two(h->buckets.count) &&
	       tag_rows(t, h->exact.at, h->exact.count, sizeof(struct tag_exact)) &&
	       tag_rows(t, h->buckets.at, h->buckets.count, sizeof(struct tag_bucket)) &&
	       tag_rows(t, h->combos.at, h->combos.count, sizeof(struct tag_combo)) &&
	       tag_rows(t, h->rules.at, h->rules.count, sizeof(struct tag_rule)) &&
	       tag_rows(t, h->lists.at, h->lists.count, sizeof(uint32_t)) &&
	       tag_rows(t, h->sets.at, h->sets.count, sizeof(struct tag_set)) &&
	       power_of_two(h->makers.count) &&
	       tag_rows(t, h->makers.at, h->makers.count, sizeof(struct tag_maker)) &&
	       tag_rows(t, h->roots.at, h->roots.count, sizeof(struct tag_text));
}

const char *tag_below(const struct tag_table *t, const char *path, uint32_t *length, uint16_t *root)
{
	const struct tag_header *h = t->header;
	const struct tag_text *roots = (const void *)(t->base + h->roots.at);

	for (uint32_t i = 0; i < h->roots.count; i++) {
		const char *text = tag_rows(t, roots[i].at, roots[i].size, 1);

		if (text && *length > roots[i].size && th_same(path, text, roots[i].size) &&
		    path[roots[i].size] == '/') {
			*length -= roots[i].size + 1;
			*root = (uint16_t)i;
			return path + roots[i].size + 1;
		}
	}
	return NULL;
}

/* Look up the exact name; false: not found. */
static bool look_up_exact(const struct tag_table *t, const char *name, uint32_t length,
			  struct tag_match *m)
{
	const struct tag_exact *table = (const void *)(t->base + t->header->exact.at);
	uint32_t mask = t->header->exact.count - 1, hash = tag_crc(0, name, length);

	for (uint32_t i = 0; i < TAG_PROBES; i++) {
		const struct tag_exact *e = &table[(hash + i) & mask];

		if (!e->name.size)
			return false;
		if (e->hash != hash || e->name.size != length)
			continue;
		const char *text = tag_rows(t, e->name.at, e->name.size, 1);

		if (!text || !th_same(text, name, length))
			continue;
		if (e->type != TAG_NONE && e->type != m->type) {
			m->asks = m->type == TAG_UNASKED;
			return false;
		}
		m->set = e->set;
		m->answer = TAG_FOUND;
		return true;
	}
	return false;
}

static bool excluded(const struct tag_table *t, const struct tag_rule *rule, const char *name,
		     uint32_t length, struct tag_match *m)
{
	const struct tag_section *others =
		tag_rows(t, rule->excludes.at, rule->excludes.count, sizeof(*others));

	for (uint32_t i = 0; others && i < rule->excludes.count; i++)
		if (tag_fit(t, others[i], name, length, m))
			return true;
	return false;
}

/* Whether a rule applies to the type of the task that creates the file. */
static bool fits_type(const struct tag_table *t, const struct tag_rule *rule, struct tag_match *m)
{
	const uint32_t *types = tag_rows(t, rule->types.at, rule->types.count, sizeof(*types));

	if (!rule->types.count)
		return true;
	m->asks |= m->type == TAG_UNASKED;
	for (uint32_t i = 0; types && i < rule->types.count; i++)
		if (types[i] == m->type)
			return true;
	return false;
}

static const struct tag_rule *rule_of(const struct tag_table *t, uint32_t number)
{
	const struct tag_rule *rules = (const void *)(t->base + t->header->rules.at);

	return number < t->header->rules.count ? rules + number : NULL;
}

/* Rules are stored in order of precedence: the first that matches wins, unless another one of
 * the same rank has different settings. */
static void weigh(const struct tag_table *t, uint32_t number, const char *name, uint32_t length,
		  struct tag_match *m)
{
	const struct tag_rule *rule = rule_of(t, number);
	const struct tag_rule *best = m->answer == TAG_NO_RULE ? NULL : rule_of(t, m->rule);

	m->work++;
	if (!rule || (best && rule->rank > best->rank))
		return;
	if (!tag_fit(t, rule->parts, name, length, m) || excluded(t, rule, name, length, m) ||
	    !fits_type(t, rule, m))
		return;
	if (!best || rule->rank < best->rank)
		m->answer = TAG_FOUND;
	else if (rule->alike != best->alike)
		m->answer = TAG_CONFLICT;
	if (!best || number < m->rule)
		m->rule = number;
}

static void weigh_bucket(const struct tag_table *t, const struct tag_bucket *b, const char *name,
			 uint32_t length, struct tag_match *m)
{
	const uint32_t *numbers = (const void *)(t->base + t->header->lists.at);

	for (uint32_t i = 0; i < b->count && m->work < TAG_WORK; i++)
		if (b->first + i < t->header->lists.count)
			weigh(t, numbers[b->first + i], name, length, m);
}

static uint32_t slashes_of(const char *name, uint32_t length)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < length; i++)
		n += name[i] == '/';
	return n;
}

/* Weigh rules whose prefix and suffix, cut to a combo's lengths, equal those of the name. */
static void weigh_combo(const struct tag_table *t, uint16_t combo, uint16_t slashes,
			const char *name, uint32_t length, struct tag_match *m)
{
	const struct tag_combo *c =
		(const struct tag_combo *)(const void *)(t->base + t->header->combos.at) + combo;
	const struct tag_bucket *table = (const void *)(t->base + t->header->buckets.at);
	const uint16_t numbers[2] = {combo, slashes};
	uint32_t mask = t->header->buckets.count - 1, hash;

	if (length < c->head || length < c->tail)
		return;
	hash = tag_crc(0, name, c->head);
	hash = tag_crc(hash, name + length - c->tail, c->tail);
	hash = tag_crc(hash, numbers, sizeof(numbers));
	for (uint32_t i = 0; i < TAG_PROBES; i++) {
		const struct tag_bucket *b = &table[(hash + i) & mask];

		if (!b->count)
			return;
		if (b->hash == hash && b->combo == combo && b->slashes == slashes)
			weigh_bucket(t, b, name, length, m);
	}
}

void tag_look_up(const struct tag_table *t, const char *name, uint32_t length, uint32_t type,
		 struct tag_match *m)
{
	uint32_t slashes = slashes_of(name, length);

	m->answer = TAG_NO_RULE;
	m->type = type;
	m->asks = false;
	m->set = TAG_NONE;
	m->work = m->caught_count = 0;
	if (look_up_exact(t, name, length, m))
		return;
	for (uint32_t i = 0; i < t->header->combos.count && i < TAG_ANY_SLASHES; i++) {
		weigh_combo(t, i, slashes, name, length, m);
		weigh_combo(t, i, TAG_ANY_SLASHES, name, length, m);
	}
	if (m->work >= TAG_WORK)
		m->answer = TAG_COSTLY;
	if (m->answer != TAG_FOUND)
		return;
	m->set = rule_of(t, m->rule)->set;
	tag_fit(t, rule_of(t, m->rule)->parts, name, length, m); /* again, for the captures */
}
