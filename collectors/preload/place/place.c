// SPDX-License-Identifier: Apache-2.0
/*
 * Replaces the programs that a workflow engine executes for its tasks by a dispatcher, which
 * chooses the node of the allocation for the task (adapters/place/dispatch.py). A task is
 * recognised by its arguments, which an earlier run had too. Programs that submit jobs to a batch
 * system are recognised by their names (adapters/place/submissions.py).
 *
 * TRACEHINT_PLACE names a table: checksums of the tasks' arguments, checksums of program names (of
 * an empty argument and the name), and the words of the dispatcher's command line, to which the
 * task's program and its arguments are appended. The dispatcher does not get the variable, so that
 * a task is placed once.
 */
#include "../hook.h"
#include "../tag/hinter.h"

#define MAGIC "THPLACE\1"
#define MOST_WORDS 65536
#define X_OK 1
#define FNV_START 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

static const struct place_table {
	char magic[8];
	uint32_t buckets, words; /* buckets: a power of two; words: after them, ended by NUL */
	uint64_t checksum[];	 /* 0: free */
} * table;

static const char *words_of(const struct place_table *t)
{
	return (const char *)(t->checksum + t->buckets);
}

/* Whether the table contains the stated number of words, each ended by NUL. */
static bool has_words(const struct place_table *t, size_t size)
{
	const char *at = words_of(t), *end = (const char *)t + size;
	uint32_t found = 0;

	for (; at < end; at++)
		found += !*at;
	return found == t->words && found > 0 && !end[-1];
}

static bool start(const char *value, const struct th_program *program)
{
	size_t size = 0;
	const struct place_table *t = tag_map(value, &size);

	(void)program;
	if (!t || size < sizeof(*t) || !th_same(t->magic, MAGIC, sizeof(t->magic)) || !t->buckets ||
	    t->buckets & (t->buckets - 1) || t->buckets > (size - sizeof(*t)) / sizeof(uint64_t) ||
	    !has_words(t, size))
		return false;
	table = t;
	return true;
}

/* Add one more word, including its NUL, to an FNV-1a checksum. */
static uint64_t add(uint64_t sum, const char *word)
{
	do
		sum = (sum ^ (unsigned char)*word) * FNV_PRIME;
	while (*word++);
	return sum;
}

/* Return the checksum of the arguments; set `count` to their number. */
static uint64_t checksum(char *const *argv, size_t *count)
{
	uint64_t sum = FNV_START;

	for (*count = 0; argv[*count] && *count < MOST_WORDS; ++*count)
		sum = add(sum, argv[*count]);
	return sum ? sum : 1;
}

static bool is_task(uint64_t sum)
{
	uint32_t mask = table->buckets - 1;

	for (uint32_t i = 0; i < table->buckets; i++) {
		uint64_t found = table->checksum[(sum + i) & mask];

		if (!found || found == sum)
			return found;
	}
	return false;
}

static bool is_named(const char *program)
{
	const char *name = program;

	for (; *program; program++)
		if (*program == '/')
			name = program + 1;
	return is_task(add(add(FNV_START, ""), name));
}

/* Return a list of the words, the program, its arguments and NULL; NULL: not a task. */
static char **replacing(const struct th_call *call, size_t *bytes)
{
	const char *program = (const char *)call->arg[0];
	char *const *argv = (char *const *)call->arg[1];
	size_t count = 0, at = 0;

	if (call->nr != __NR_execve || !program || !argv)
		return NULL;
	if ((!is_task(checksum(argv, &count)) && !is_named(program)) || count == MOST_WORDS)
		return NULL;
	/* a search in PATH tries to execute the name in each directory */
	if (th_failed(th_sys(__NR_access, program, X_OK)))
		return NULL;
	*bytes = (table->words + count + 2) * sizeof(char *);
	char **made = th_map(*bytes);

	if (!made)
		return NULL;
	for (const char *word = words_of(table); at < table->words; word += th_len(word) + 1)
		made[at++] = (char *)word;
	made[at++] = (char *)call->arg[0];
	th_copy(made + at, argv, count * sizeof(*made));
	return made;
}

const struct th_observer th_place = {
	.variable = "TRACEHINT_PLACE",
	.start = start,
	.replacing = replacing,
};
