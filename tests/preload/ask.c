// SPDX-License-Identifier: Apache-2.0
/*
 * Query the rule table: for each NUL-ended name on standard input, print a line with the answer and
 * the key and value of each setting in hexadecimal. `ask TABLE times N` repeats the look-up N
 * times, `ask TABLE type N` is for files of tasks of that type; `ask word` prints the word of each
 * process, whose command line is a line in hexadecimal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "tag/word.h"

static uint32_t kind = TAG_UNASKED;

static void hex(const char *s, long n)
{
	for (long i = 0; i < n; i++)
		printf("%02x", (unsigned char)s[i]);
}

static void answer(const struct tag_table *t, const char *name, uint32_t length)
{
	static char group[TAG_MAX_GROUP + 16], value[TAG_MAX_VALUE + 512];
	static const char *words[] = {"found", "no_rule", "conflict", "costly", "damaged"};
	struct tag_match m;
	uint32_t count = 0;

	tag_look_up(t, name, length, kind, &m);
	printf("%s", m.answer == TAG_FOUND && m.set == TAG_NONE ? "no_hint" : words[m.answer]);
	const struct tag_setting *s = NULL;

	if (m.answer == TAG_FOUND && m.set != TAG_NONE)
		s = tag_settings(t, &m, name, group, &count);
	for (uint32_t i = 0; s && i < count; i++) {
		long size = tag_value(t, &s[i], group, value);

		const char *key = tag_rows(t, s[i].key.at, s[i].key.size, 1);

		if (!key || size < 0)
			continue;
		printf(" ");
		hex(key, s[i].key.size);
		printf("=");
		hex(value, size);
	}
	printf("\n");
}

static int say_words(void)
{
	static char line[4 * TAG_LINE], raw[2 * TAG_LINE];

	while (fgets(line, sizeof(line), stdin)) {
		size_t n = strcspn(line, "\n") / 2;

		for (size_t i = 0; i < n; i++)
			sscanf(line + 2 * i, "%2hhx", (unsigned char *)&raw[i]);
		char *copy = malloc(n ? n : 1); /* exact size: the sanitizer detects overruns */

		memcpy(copy, raw, n);
		struct tag_word word = tag_word_of(copy, n < TAG_LINE ? n : TAG_LINE);

		hex(word.text, word.size);
		printf("\n");
		free(copy);
	}
	return 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	static char name[1 << 16];
	struct tag_table t;
	struct stat st;
	if (argc == 2 && !strcmp(argv[1], "word"))
		return say_words();
	int fd = open(argv[1], O_RDONLY), c;
	uint32_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 2;
	char *base = malloc((size_t)st.st_size); /* exact size: the sanitizer detects overruns */

	if (read(fd, base, (size_t)st.st_size) != st.st_size ||
	    !tag_use(&t, base, (size_t)st.st_size)) {
		printf("refused\n");
		free(base);
		return 1;
	}
	bool typed = argc > 3 && !strcmp(argv[2], "type");
	long times = argc > 3 && !typed ? atol(argv[3]) : 0;

	kind = typed ? (uint32_t)atol(argv[3]) : TAG_UNASKED;

	while ((c = getchar()) != EOF) {
		if (n < sizeof(name))
			name[n++] = (char)c;
		if (c)
			continue;
		if (times) {
			struct tag_match m;
			double start = seconds();

			for (long i = 0; i < times; i++)
				tag_look_up(&t, name, n - 1, kind, &m);
			printf("%.1f ns, %u steps\n", (seconds() - start) / times * 1e9, m.work);
		} else {
			answer(&t, name, n - 1);
		}
		n = 0;
	}
	free(base);
	return 0;
}
