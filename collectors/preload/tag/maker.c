/*
 * The type of the task to which a process belongs (tag/word.h), read from /proc when it creates a
 * file for which a rule depends on the type. Processes are not tracked for this, so it costs
 * nothing where no rule depends on it.
 */
#include "word.h"

#define GENERATIONS 64
#define O_RDONLY_CLOEXEC 02000000

/* Read /proc/PID/NAME into `out`; returns its size, at most `room`; 0: not available. */
static size_t read_of(uint32_t pid, const char *name, char *out, size_t room)
{
	char path[64] = "/proc/";
	size_t got = 0;

	th_copy(th_put_number(path + 6, pid), name, th_len(name) + 1);
	long fd = th_sys(__NR_openat, TH_AT_FDCWD, path, O_RDONLY_CLOEXEC, 0);

	if (th_failed(fd))
		return 0;
	while (got < room) {
		long more = th_sys(__NR_read, fd, out + got, room - got);

		if (th_failed(more) || !more)
			break;
		got += (size_t)more;
	}
	th_sys(__NR_close, fd);
	return got;
}

/* Return the fourth word of /proc/PID/stat; the second, in brackets, may contain anything. */
static uint32_t parent_of(uint32_t pid, char *text, size_t room)
{
	size_t size = read_of(pid, "/stat", text, room), at = size;
	uint32_t parent = 0;

	while (at && text[at - 1] != ')')
		at--;
	for (at += 3; at < size && text[at] >= '0' && text[at] <= '9'; at++)
		parent = parent * 10 + (uint32_t)(text[at] - '0');
	return parent;
}

static uint32_t type_of_word(const struct tag_table *t, struct tag_word word)
{
	const struct tag_maker *table = (const void *)(t->base + t->header->makers.at);
	uint32_t mask = t->header->makers.count - 1, hash = tag_crc(0, word.text, word.size);

	for (uint32_t i = 0; word.size && i < TAG_PROBES; i++) {
		const struct tag_maker *m = &table[(hash + i) & mask];

		if (!m->word.size)
			break;
		const char *text = tag_rows(t, m->word.at, m->word.size, 1);

		if (m->hash == hash && m->word.size == word.size && text &&
		    th_same(text, word.text, word.size))
			return m->type;
	}
	return TAG_UNKNOWN;
}

uint32_t tag_type_of(const struct tag_table *t, uint32_t pid, char *room)
{
	uint32_t type = TAG_UNKNOWN;

	for (int i = 0; i < GENERATIONS && pid > 1 && pid != t->header->run; i++) {
		size_t size = read_of(pid, "/cmdline", room, TAG_LINE);
		uint32_t found = type_of_word(t, tag_word_of(room, size));

		type = found == TAG_UNKNOWN ? type : found;
		pid = parent_of(pid, room, TAG_LINE);
	}
	return type;
}
