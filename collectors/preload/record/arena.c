// SPDX-License-Identifier: Apache-2.0
/*
 * Allocation of records. The file is mapped in windows. Disk blocks are allocated in units before
 * their space is used, so that a full disk is an error here and no SIGBUS in the program.
 */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "../trusted.h"
#include "record.h"

#define WINDOW (64ULL << 20)
#define RLIMIT_AS 9
#define WINDOWS 512
#define ZEROS (64UL << 10) /* of larger pieces a process would pay for all to use a page */
#define WAITS 2000	   /* rounds of waiting for a unit that another process makes */
#define TRIES 64
#define CHUNK 4096U
#define CHUNK_MOST 65536U
#define MAX_FOLDER 4000

struct th_arena *arena;
static bool nameless;	   /* an unnamed file: `path` is the recorder's descriptor in /proc */
static char *first_window; /* the only one of most recordings */
static TH_LARGE char *windows[WINDOWS];
static const char *path;
static unsigned long long window_size = WINDOW;

static char **window_at(unsigned long long i)
{
	return i ? &windows[i] : &first_window;
}

static int open_file(void)
{
	return (int)th_open_own(path, O_RDWR | O_CLOEXEC | (nameless ? 0 : O_NOFOLLOW));
}

static bool choose_path(const char *value)
{
	nameless = th_starts(value, "/proc/");
	if (nameless)
		path = th_keep(value, "");
	else
		path = th_len(value) > MAX_FOLDER ? NULL : th_keep(value, "/" TH_ARENA_FILE);
	return path;
}

static char *map_window(int fd, unsigned long long i)
{
	long at = th_sys(__NR_mmap, 0, window_size, 3, 1 /* shared */, fd, i * window_size);
	char *none = NULL;

	if (th_failed(at))
		return NULL;
	if (!__atomic_compare_exchange_n(window_at(i), &none, (char *)at, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST)) {
		th_sys(__NR_munmap, at, window_size);
		return none;
	}
	return (char *)at;
}

/* With limited address space, use small windows: they reach 2 GiB of the recording. */
static void choose_window(void)
{
	unsigned long long limit[2] = {~0ULL, 0};

	th_sys(__NR_prlimit64, 0, RLIMIT_AS, NULL, limit);
	if (limit[0] != ~0ULL)
		window_size = TH_UNIT;
}

/* Count a program that cannot be recorded, if the recording can be opened. */
void arena_missed(const char *value)
{
	int fd = choose_path(value) ? open_file() : -1;

	if (fd < 0)
		return;
	struct th_arena *head =
		(struct th_arena *)th_sys(__NR_mmap, 0, TH_ARENA_PAGE, 3, 1 /* shared */, fd, 0);

	th_sys(__NR_close, fd);
	if (th_failed((long)head))
		return;
	if (head->magic == TH_ARENA_MAGIC && head->version == TH_ARENA_VERSION)
		__atomic_fetch_add(&head->lost[TH_LOST_TABLE], 1, __ATOMIC_RELAXED);
	th_sys(__NR_munmap, head, TH_ARENA_PAGE);
}

/* Whether this process can open the recording, as a program that it executes must do. */
bool arena_reachable(void)
{
	int fd = open_file();

	if (fd >= 0)
		th_sys(__NR_close, fd);
	return fd >= 0;
}

/* Whether an unnamed recording is out of reach, as in another user or PID namespace. */
bool arena_out_of_reach(void)
{
	return nameless && !arena_reachable();
}

/* Map the arena. `value`: its directory, or the file itself in /proc. */
bool arena_open(const char *value)
{
	int fd = choose_path(value) ? open_file() : -1;

	if (fd < 0)
		return false;
	struct statx facts;

	choose_window();
	/* a shorter file has no page to read */
	if (!th_failed(th_sys(__NR_statx, fd, "", 0x1000, STATX_SIZE, &facts)) &&
	    facts.stx_size >= sizeof(*arena))
		arena = (struct th_arena *)map_window(fd, 0);
	th_sys(__NR_close, fd);
	if (arena) /* a write that changes nothing: one page fault instead of two */
		__asm__ volatile("lock orl $0, %0" : "+m"(arena->epochs));
	return arena && arena->magic == TH_ARENA_MAGIC && arena->version == TH_ARENA_VERSION;
}

/* Write zeros, unless RLIMIT_FSIZE could make that a signal: the unit is then cached in large
 * pieces, and touching a page costs a tenth of a page that the file system has to create. */
static void write_zeros(int fd, unsigned long long at)
{
	unsigned long long limit[2] = {0, 0};
	long got = th_sys(__NR_prlimit64, 0, 1 /* RLIMIT_FSIZE */, NULL, limit);
	char *zeros = th_failed(got) || limit[0] != ~0ULL ? NULL : th_map(ZEROS);

	if (!zeros)
		return;
	for (unsigned int i = 0; i < TH_UNIT / ZEROS; i++)
		th_sys(__NR_pwrite64, fd, zeros, ZEROS, at + i * ZEROS);
	th_sys(__NR_munmap, zeros, ZEROS);
}

/* Allocate a unit. No process uses it before it is ready, so nothing is overwritten. */
static bool unit_make(unsigned long long unit)
{
	unsigned long long have = arena->allocated, end = (unit + 1) * TH_UNIT;
	int fd = open_file();
	bool done = fd >= 0 && !th_failed(th_sys(__NR_fallocate, fd, 0, unit * TH_UNIT, TH_UNIT));

	if (done)
		write_zeros(fd, unit * TH_UNIT);
	if (fd >= 0)
		th_sys(__NR_close, fd);
	while (done && have < end &&
	       !__atomic_compare_exchange_n(&arena->allocated, &have, end, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST))
		;
	__atomic_store_n(&arena->units[unit], done ? TH_UNIT_READY : TH_UNIT_NONE,
			 __ATOMIC_RELEASE);
	return done;
}

static bool unit_wait(const unsigned char *state)
{
	for (unsigned int i = 0; i < WAITS; i++) {
		if (__atomic_load_n(state, __ATOMIC_ACQUIRE) != TH_UNIT_CLAIMED)
			return true;
		th_sys(__NR_sched_yield);
	}
	return false;
}

/* Return the state of a unit. NONE: disk full. CLAIMED: its maker is slow, or was killed. */
static enum th_unit unit_use(unsigned long long unit)
{
	unsigned char *state = &arena->units[unit],
		      found = __atomic_load_n(state, __ATOMIC_ACQUIRE);

	if (found == TH_UNIT_CLAIMED && unit_wait(state))
		found = __atomic_load_n(state, __ATOMIC_ACQUIRE);
	if (found == TH_UNIT_NONE &&
	    __atomic_compare_exchange_n(state, &found, TH_UNIT_CLAIMED, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		return unit_make(unit) ? TH_UNIT_READY : TH_UNIT_NONE;
	return found;
}

/* Return an offset in a ready unit, or 0. The rest of a unit that cannot be used stays empty. */
static unsigned long long allocate_space(unsigned int size)
{
	for (unsigned int i = 0; i < TRIES; i++) {
		unsigned long long at = __atomic_fetch_add(&arena->used, size, __ATOMIC_SEQ_CST);
		unsigned long long next = (at / TH_UNIT + 1) * TH_UNIT, behind = at + size;

		if (behind > arena->size)
			return 0;
		if (behind > next)
			continue;
		enum th_unit state = unit_use(at / TH_UNIT);

		if (state != TH_UNIT_CLAIMED)
			return state == TH_UNIT_READY ? at : 0;
		while (behind < next &&
		       !__atomic_compare_exchange_n(&arena->used, &behind, next, false,
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			;
	}
	return 0;
}

static char *window_of(unsigned long long at)
{
	char *window = at / window_size < WINDOWS ? *window_at(at / window_size) : NULL;

	if (window || at / window_size >= WINDOWS)
		return window;
	int fd = open_file();

	if (fd < 0)
		return NULL;
	window = map_window(fd, at / window_size);
	th_sys(__NR_close, fd);
	return window;
}

struct th_chunk *chunk_new(unsigned int kind, unsigned int size, unsigned int epoch)
{
	unsigned long long at = allocate_space(size);
	char *window = at ? window_of(at) : NULL;

	if (!window) {
		__atomic_fetch_add(&arena->unplaced, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	struct th_chunk *chunk = (struct th_chunk *)(window + at % window_size);

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

/* Allocate `size` bytes (a multiple of 8) in a chunk of this kind; NULL: not possible. */
void *record_new(struct rec *rec, unsigned int kind, unsigned int size)
{
	struct th_chunk *chunk = rec->chunks[kind];
	void *at = kind == TH_EPISODE ? take_first(rec->page) : NULL;

	if (!at)
		at = take(chunk, size);
	if (at)
		return at;
	/* the first chunk is a page, later ones are larger: many processes are short */
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

/* Return the offset of an address in the arena; 0: it is elsewhere. */
unsigned long long arena_offset(const void *at)
{
	for (unsigned long long i = 0; i < WINDOWS; i++) {
		const char *window = *window_at(i);

		if (window && (const char *)at >= window && (const char *)at < window + window_size)
			return i * window_size + (unsigned long long)((const char *)at - window);
	}
	return 0;
}

/* Store a text and return its identifier; 0: no space. */
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
