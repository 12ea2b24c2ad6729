/*
 * The word that identifies a process: its program, or the script that it interprets. Made from its
 * command line alone, as schemas/commandline/programs.py does for a recorded one.
 */
#include "word.h"

#include "interpreters.h"

struct words { /* each ended by NUL, one after the other */
	const char *at, *end;
};

static bool is_listed(const char *list, const char *word, size_t size)
{
	size_t length = th_len(list);

	for (size_t at = 0; size && at + size + 2 <= length; at++)
		if (list[at] == ' ' && list[at + 1 + size] == ' ' &&
		    th_same(list + at + 1, word, size))
			return true;
	return false;
}

/* Return the next word; NULL: no complete one is left. */
static const char *next(struct words *w, size_t *size)
{
	const char *word = w->at;

	for (const char *c = word; c < w->end; c++)
		if (!*c) {
			w->at = c + 1;
			*size = (size_t)(c - word);
			return word;
		}
	return NULL;
}

/* Return the last component, without the dash of a login shell. */
static struct tag_word base_of(const char *path, size_t size)
{
	const char *base = path, *end = path + size;

	for (const char *c = path; c < end; c++)
		if (*c == '/')
			base = c + 1;
	while (base < end && *base == '-')
		base++;
	return (struct tag_word){base, (uint32_t)(end - base)};
}

static const struct tag_word none;

static struct tag_word shell_script(struct words w)
{
	const char *word;
	size_t size;

	while ((word = next(&w, &size))) {
		bool option = size > 1 && (word[0] == '-' || word[0] == '+');

		if (!option)
			return base_of(word, size);
		if (word[1] == '-' && word[0] == '-')
			continue;
		for (size_t i = 1; word[0] == '-' && i < size; i++)
			if (word[i] == 'c')
				return none;
		if (word[size - 1] == 'o' || word[size - 1] == 'O') /* -euo pipefail */
			next(&w, &size);
	}
	return none;
}

/* Whether it is `-e`, or flags that end with it: `-lne`; not `-Mre`. */
static bool is_text_option(const struct interpreter *by, const char *word, size_t size)
{
	if (is_listed(by->texts, word, size))
		return true;
	if (size < 3 || word[0] != '-' || is_listed(by->values, word, 2))
		return false;
	for (size_t i = 1; i < size; i++)
		if (!((word[i] >= '0' && word[i] <= '9') || (word[i] >= 'a' && word[i] <= 'z') ||
		      (word[i] >= 'A' && word[i] <= 'Z')))
			return false;
	const char last[2] = {'-', word[size - 1]};

	return is_listed(by->texts, last, sizeof(last));
}

static struct tag_word script(struct words w, const struct interpreter *by)
{
	const char *word;
	size_t size;

	while ((word = next(&w, &size))) {
		if (is_text_option(by, word, size))
			return none;
		if (is_listed(by->scripts, word, size)) {
			word = next(&w, &size);
			return word ? base_of(word, size) : none;
		}
		if (is_listed(by->values, word, size))
			next(&w, &size);
		else if (!size || word[0] != '-')
			return base_of(word, size);
	}
	return none;
}

/* Return the interpreter of this name without its version: python3.11 is python. */
static const struct interpreter *interpreter_of(struct tag_word name)
{
	static const char version[] = "0123456789.-";

	for (; name.size; name.size--) {
		bool part = false;

		for (size_t i = 0; i < sizeof(version) - 1; i++)
			part |= name.text[name.size - 1] == version[i];
		if (!part)
			break;
	}
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(*interpreters); i++)
		if (th_len(interpreters[i].name) == name.size &&
		    th_same(interpreters[i].name, name.text, name.size))
			return &interpreters[i];
	return NULL;
}

struct tag_word tag_word_of(const char *line, size_t size)
{
	struct words w = {line, line + size};
	size_t length;
	const char *first = next(&w, &length);

	if (!first)
		return none;
	struct tag_word name = base_of(first, length);
	const struct interpreter *by = interpreter_of(name);

	if (is_listed(shells, name.text, name.size))
		name = shell_script(w);
	else if (by)
		name = script(w, by);
	return name.size <= LONGEST ? name : none;
}
