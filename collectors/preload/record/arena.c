// SPDX-License-Identifier: Apache-2.0
/*
 * Places for records. The file is mapped in windows; blocks are taken from the disk before they
 * are given out, so that a full disk is an error here and no SIGBUS in the program.
 */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "record.h"

#define WINDOW (64ULL << 20)
#define WINDOWS 512
#define GROW (4ULL << 20)
#define CHUNK 4096U
#define CHUNK_MOST 65536U
#define MAX_FOLDER 4000
#define MADV_POPULATE_WRITE 23

struct th_arena *arena;
static char *windows[WINDOWS];
static char path[MAX_FOLDER + sizeof(TH_ARENA_FILE) + 1];

static int open_file(void)
{
	return (int)th_sys(__NR_open, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
}

static char *map_window(int fd, unsigned long long i)
{
	long at = th_sys(__NR_mmap, 0, WINDOW, 3, 1 /* shared */, fd, i * WINDOW);
	char *none = NULL;

	if (th_failed(at))
		return NULL;
	if (!__atomic_compare_exchange_n(&windows[i], &none, (char *)at, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST)) {
		th_sys(__NR_munmap, at, WINDOW);
		return none;
	}
	return (char *)at;
}

bool arena_open(const char *folder)
{
	size_t n = th_len(folder);

	if (n > MAX_FOLDER)
		return false;
	th_copy(path, folder, n);
	path[n] = '/';
	th_copy(path + n + 1, TH_ARENA_FILE, sizeof(TH_ARENA_FILE));
	int fd = open_file();

	if (fd < 0)
		return false;
	struct statx facts;

	/* a shorter file has no page to look at */
	if (!th_failed(th_sys(__NR_statx, fd, "", 0x1000, STATX_SIZE, &facts)) &&
	    facts.stx_size >= TH_ARENA_PAGE)
		arena = (struct th_arena *)map_window(fd, 0);
	th_sys(__NR_close, fd);
	return arena && arena->magic == TH_ARENA_MAGIC && arena->version == TH_ARENA_VERSION;
}

/* Blocks up to `end`, and the window of `at`. */
static char *prepare(unsigned long long at, unsigned long long end)
{
	unsigned long long have = __atomic_load_n(&arena->allocated, __ATOMIC_SEQ_CST);
	char *window = windows[at / WINDOW];

	if (window && end <= have)
		return window;
	int fd = open_file();

	if (fd < 0)
		return NULL;
	while (end > have) {
		unsigned long long more = have + GROW < arena->size ? have + GROW : arena->size;

		if (th_failed(th_sys(__NR_fallocate, fd, 0, have, more - have)))
			break;
		if (__atomic_compare_exchange_n(&arena->allocated, &have, more, false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			have = more;
	}
	if (end > have)
		window = NULL;
	else if (!window)
		window = map_window(fd, at / WINDOW);
	th_sys(__NR_close, fd);
	return window;
}

struct th_chunk *chunk_new(unsigned int kind, unsigned int size, unsigned int epoch)
{
	unsigned long long at = __atomic_fetch_add(&arena->used, size, __ATOMIC_SEQ_CST);
	char *window;

	/* a chunk that would lie in two windows is left empty */
	while (at / WINDOW != (at + size - 1) / WINDOW)
		at = __atomic_fetch_add(&arena->used, size, __ATOMIC_SEQ_CST);
	window = at + size <= arena->size && at / WINDOW < WINDOWS ? prepare(at, at + size) : NULL;
	if (!window) {
		__atomic_fetch_add(&arena->unplaced, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	struct th_chunk *chunk = (struct th_chunk *)(window + at % WINDOW);

	if (size > CHUNK) /* together: one fault per page costs three times as much */
		th_sys(__NR_madvise, chunk, size, MADV_POPULATE_WRITE);
	chunk->kind = kind;
	chunk->self = at;
	chunk->size = size;
	chunk->epoch = epoch;
	chunk->used = sizeof(*chunk);
	chunk->magic = TH_CHUNK_MAGIC;
	return chunk;
}

static void *take(struct th_chunk *chunk, unsigned int size)
{
	if (!chunk || chunk->used + size > chunk->size)
		return NULL;
	unsigned int at = __atomic_fetch_add(&chunk->used, size, __ATOMIC_SEQ_CST);

	return at + size <= chunk->size ? (char *)chunk + at : NULL;
}

static void *take_first(struct th_process_page *page)
{
	if (page->first_used >= TH_FIRST)
		return NULL;
	unsigned int n = __atomic_fetch_add(&page->first_used, 1, __ATOMIC_RELAXED);

	return n < TH_FIRST ? &page->first[n] : NULL;
}

/* Room of `size` bytes (a multiple of 8) in a chunk of this kind; NULL: none to be had. */
void *record_new(struct rec *rec, unsigned int kind, unsigned int size)
{
	struct th_chunk *chunk = rec->chunks[kind];
	void *at = kind == TH_EPISODE ? take_first(rec->page) : NULL;

	if (!at)
		at = take(chunk, size);
	if (at)
		return at;
	/* the first is a page, each later one is larger: many processes are short */
	unsigned int wanted = chunk && chunk->size >= CHUNK ? chunk->size * 2 : CHUNK;

	if (wanted > CHUNK_MOST)
		wanted = CHUNK_MOST;
	while (wanted < size + sizeof(*chunk))
		wanted *= 2;
	chunk = chunk_new(kind, wanted, rec->epoch);
	if (!chunk)
		return NULL;
	rec->chunks[kind] = chunk;
	return take(chunk, size);
}

/* Of something in the arena; 0 for what is elsewhere. */
unsigned long long arena_offset(const void *at)
{
	for (unsigned long long i = 0; i < WINDOWS; i++)
		if (windows[i] && (const char *)at - windows[i] >= 0 &&
		    (unsigned long long)((const char *)at - windows[i]) < WINDOW)
			return i * WINDOW + (unsigned long long)((const char *)at - windows[i]);
	return 0;
}

/* Returns the text's identifier; 0: no room. */
unsigned int text_put(struct rec *rec, unsigned int dir, const char *text, unsigned int len)
{
	unsigned int size = (unsigned int)(sizeof(struct th_text) + len + 7) & ~7U;
	unsigned int last = len ? (unsigned char)text[len - 1] : 0;
	const struct th_text **place = &rec->texts[(last ^ len) % TH_TEXTS];
	const struct th_text *known = __atomic_load_n(place, __ATOMIC_ACQUIRE);

	if (known && known->len == len && known->dir == dir && th_same(known + 1, text, len))
		return (unsigned int)(arena_offset(known) / 8);
	struct th_text *to = record_new(rec, TH_PATH, size);

	if (!to) {
		lose(rec, TH_LOST_LIFECYCLE, 1);
		return 0;
	}
	to->len = len;
	to->dir = dir;
	th_copy(to + 1, text, len);
	__atomic_store_n(place, to, __ATOMIC_RELEASE);
	return (unsigned int)(arena_offset(to) / 8);
}

void lose(struct rec *rec, enum th_loss kind, unsigned int n)
{
	if (rec->page)
		__atomic_fetch_add(&rec->page->proc.lost[kind], n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&arena->lost[kind], n, __ATOMIC_RELAXED);
}
