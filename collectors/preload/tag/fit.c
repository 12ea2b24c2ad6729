/*
 * Whether a template matches a name. Each placeholder takes as much as lets the rest match, as in
 * the regex of the template: hintgen/hints/template.py has the same placeholders. At most two of a
 * template have more than one possible end; the maximum of steps per name bounds the rest.
 */
#include "table.h"

enum class { DIGIT = 1, HEX = 2, LETTER = 4, UNDERSCORE = 8, SEGMENT = 16 };

#define MAX_SEGMENT 255
#define MAX_SEGMENTS 64

/* The order of HOLES in hintgen/hints/template.py, after the literal. */
enum kind { LITERAL, N, UUID, DATE, HASH, RANDOM, WORD, ALNUM, NAME, DIRS, KINDS };

/* Placeholders that match one run of characters. */
static const struct {
	uint8_t class, least;
	uint16_t most;
} runs[KINDS] = {
	[N] = {DIGIT, 1, 40},
	[HASH] = {HEX, 2, 128},
	[RANDOM] = {DIGIT | LETTER | UNDERSCORE, 6, 12},
	[WORD] = {LETTER, 1, 64},
	[ALNUM] = {DIGIT | LETTER, 1, 128},
	[NAME] = {SEGMENT, 1, MAX_SEGMENT},
};

static uint8_t class_of(char c)
{
	char lower = c | 0x20;

	if (c == '/')
		return 0;
	if (c >= '0' && c <= '9')
		return DIGIT | HEX | SEGMENT;
	if (lower >= 'a' && lower <= 'z')
		return LETTER | SEGMENT | (lower <= 'f' ? HEX : 0);
	return SEGMENT | (c == '_' ? UNDERSCORE : 0);
}

struct name {
	const char *text;
	uint32_t length;
};

/* Return how many characters of the class follow, at most `most`. */
static uint32_t run_length(const struct name *n, uint32_t at, uint8_t class, uint32_t most)
{
	uint32_t length = 0;

	while (length < most && at + length < n->length && class_of(n->text[at + length]) & class)
		length++;
	return length;
}

/* Skip `count` characters of the class; false: there are fewer. */
static bool take(const struct name *n, uint32_t *at, uint8_t class, uint32_t count)
{
	if (run_length(n, *at, class, count) < count)
		return false;
	*at += count;
	return true;
}

static bool take_dash(const struct name *n, uint32_t *at)
{
	if (*at >= n->length || n->text[*at] != '-')
		return false;
	++*at;
	return true;
}

static bool take_uuid(const struct name *n, uint32_t *at)
{
	static const uint8_t groups[] = {8, 4, 4, 4, 12};

	for (uint32_t i = 0; i < sizeof(groups); i++)
		if ((i && !take_dash(n, at)) || !take(n, at, HEX, groups[i]))
			return false;
	return true;
}

static bool take_date(const struct name *n, uint32_t *at)
{
	if (!take(n, at, DIGIT, 4))
		return false;
	take_dash(n, at);
	if (!take(n, at, DIGIT, 2))
		return false;
	take_dash(n, at);
	return take(n, at, DIGIT, 2);
}

/* Skip whole components with their slashes, or none; return the end. */
static uint32_t take_dirs(const struct name *n, uint32_t at)
{
	for (uint32_t i = 0; i < MAX_SEGMENTS; i++) {
		uint32_t length = run_length(n, at, SEGMENT, MAX_SEGMENT);

		if (!length || at + length >= n->length || n->text[at + length] != '/')
			break;
		at += length + 1;
	}
	return at;
}

/* Set the least and the greatest end of a placeholder that begins at c->start; false: none. */
static bool begin(const struct name *n, uint32_t kind, struct tag_choice *c)
{
	uint32_t at = c->start;

	if (kind == UUID || kind == DATE) {
		if (!(kind == UUID ? take_uuid(n, &at) : take_date(n, &at)))
			return false;
		c->least = c->end = at;
		return true;
	}
	if (kind == DIRS) {
		c->least = at;
		c->end = take_dirs(n, at);
		return true;
	}
	if (kind >= KINDS || !runs[kind].most)
		return false;
	c->least = at + runs[kind].least;
	c->end = at + run_length(n, at, runs[kind].class, runs[kind].most);
	return c->end >= c->least;
}

/* Set the next shorter end of a placeholder; false: there is none. */
static bool shorten(const struct name *n, uint32_t kind, struct tag_choice *c)
{
	if (c->end <= c->least)
		return false;
	c->end--;
	while (kind == DIRS && c->end > c->least && n->text[c->end - 1] != '/')
		c->end--;
	return true;
}

static bool literal_fits(const struct tag_table *t, const struct tag_part *part,
			 const struct name *n, uint32_t at)
{
	const char *text = tag_rows(t, part->text.at, part->text.size, 1);

	return text && part->text.size <= n->length - at &&
	       th_same(n->text + at, text, part->text.size);
}

static bool search(const struct tag_table *t, const struct tag_part *parts, uint32_t count,
		   const struct name *n, struct tag_match *m)
{
	uint32_t at = 0, i = 0, depth = 0;

	for (; m->work < TAG_WORK; m->work++) {
		bool fits;

		if (i == count) {
			fits = at == n->length;
			if (fits) {
				m->caught_count = depth;
				return true;
			}
		} else if (parts[i].kind == LITERAL) {
			fits = literal_fits(t, &parts[i], n, at);
			at += fits ? parts[i].text.size : 0;
		} else {
			struct tag_choice *c = &m->caught[depth];

			*c = (struct tag_choice){.part = i, .start = at};
			fits = depth < TAG_MAX_HOLES && begin(n, parts[i].kind, c);
			at = fits ? c->end : at;
			depth += fits;
		}
		i++;
		if (fits)
			continue;
		while (depth &&
		       !shorten(n, parts[m->caught[depth - 1].part].kind, &m->caught[depth - 1]))
			depth--;
		if (!depth)
			return false;
		at = m->caught[depth - 1].end;
		i = m->caught[depth - 1].part + 1;
	}
	return false;
}

bool tag_fit(const struct tag_table *t, struct tag_section template, const char *name,
	     uint32_t length, struct tag_match *m)
{
	const struct tag_part *parts = tag_rows(t, template.at, template.count, sizeof(*parts));
	const struct name n = {name, length};

	if (!parts || !template.count || template.count > UINT16_MAX)
		return false;
	const struct tag_part *last = &parts[template.count - 1];

	if (last->kind == LITERAL &&
	    (last->text.size > length || !literal_fits(t, last, &n, length - last->text.size)))
		return false;
	return search(t, parts, template.count, &n, m);
}
