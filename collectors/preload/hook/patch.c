// SPDX-License-Identifier: Apache-2.0
/* Redirects system-call sites to th_entry: each jumps to its own trampoline nearby. */
#include "bare.h"
#include "sites.h"

#define TRAMPOLINE 96
#define STUB 32 /* an island begins with one stub per entry */
#define STUBS (ENTRIES * STUB)
#define REACH (1UL << 30) /* jumps reach 2 GiB; the object itself is in between */

static unsigned char *put(unsigned char *at, const void *bytes, size_t n)
{
	th_copy(at, bytes, n);
	return at + n;
}

static unsigned char *put_relative(unsigned char *at, const char *opcode, size_t n,
				   const unsigned char *to)
{
	at = put(at, opcode, n);
	int32_t offset = (int32_t)(to - (at + 4));

	return put(at, &offset, 4);
}

/* Write the code that replaces the call of a function; the arguments are in place already. */
static void write_cancel(unsigned char *at, const struct site *site, const unsigned char *stubs)
{
	at = put_relative(at, "\x4c\x8d\x1d", 3, site->cancel); /* lea function, %r11 */
	put_relative(at, "\xe9", 1, stubs + ENTRY_CANCEL * STUB);
}

/* Write the trampoline of a site, see entry.S; `stubs` jump to the entries. */
static void write_trampoline(unsigned char *at, const struct site *site, const unsigned char *stubs)
{
	static const char down[] = "\x48\x8d\x64\x24\x80", up[] = "\x48\x8d\xa4\x24\x80\0\0\0";
	const unsigned char *back = site->at + site->length, *compare;

	if (site->nr >= 0) {
		at = put(at, "\xb8", 1);
		at = put(at, &site->nr, 4);
	} else {
		at = put(at, site->at, site->before);
	}
	at = put(at, down, 5);
	at = put_relative(at, "\x4c\x8d\x1d", 3, back); /* lea back, %r11 */
	at = put_relative(at, "\xe8", 1, stubs);	/* call */
	unsigned char *first = at;

	at = put(at, up, 8);
	compare = at;
	at = put(at, site->at + 2, site->compare);
	at = put_relative(at, "\xe9", 1, back);
	at = first + 19; /* FORK_PART */
	at = put(at, up, 8);
	at = put(at, "\x0f\x05\x48\x85\xc0\x74", 6); /* syscall; test %rax,%rax; je compare */
	signed char hop = (signed char)(compare - (at + 1));

	at = put(at, &hop, 1);
	at = put(at, down, 5);
	at = put_relative(at, "\x4c\x8d\x1d", 3, back);
	at = put_relative(at, "\xe8", 1, stubs + ENTRY_FORK_AFTER * STUB);
	at = put(at, up, 8);
	put_relative(at, "\xe9", 1, compare);
}

size_t island_size(unsigned int sites)
{
	return STUBS + (size_t)sites * TRAMPOLINE;
}

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

static const char *const own_entries[ENTRIES] = {th_entry, th_fork_entry_after, th_cancel_entry};

void entries_of(unsigned int entry[ENTRIES])
{
	for (unsigned int i = 0; i < ENTRIES; i++)
		entry[i] = (unsigned int)(own_entries[i] - __ehdr_start);
}

/* Write a jump to an entry. With the loader's list it uses rcx, which a system call changes too. */
static void write_stub(unsigned char *at, const struct way *way, enum entry which)
{
	static const char third[] = "\x48\x8b\x49\x18" /* mov 24(%rcx), %rcx: l_next */
				    "\x48\x8b\x49\x18" /* again */
				    "\x48\x8b\x09"     /* mov (%rcx), %rcx: l_addr */
				    "\x48\x81\xc1";    /* add $entry, %rcx */
	unsigned int entry[ENTRIES];

	if (way->slots) {
		put_relative(at, "\xff\x25", 2, way->slots + which * 8); /* jmp *slot */
		return;
	}
	entries_of(entry);
	at = put_relative(at, "\x48\x8b\x0d", 3, way->list); /* mov r_map, %rcx */
	at = put(at, third, sizeof(third) - 1);
	at = put(at, &entry[which], 4);
	put(at, "\xff\xe1", 2); /* jmp *%rcx */
}

void write_island(unsigned char *island, const struct way *way, const struct site *sites,
		  unsigned int n)
{
	for (enum entry i = 0; i < ENTRIES; i++)
		write_stub(island + i * STUB, way, i);
	for (unsigned int i = 0; i < n; i++)
		if (sites[i].cancel)
			write_cancel(island + STUBS + i * TRAMPOLINE, &sites[i], island);
		else
			write_trampoline(island + STUBS + i * TRAMPOLINE, &sites[i], island);
}

void lead_sites(unsigned char *island, const struct site *sites, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		put_relative(sites[i].at, sites[i].cancel ? "\xe8" : "\xe9", 1,
			     island + STUBS + i * TRAMPOLINE);
}

void write_slots(unsigned char *slots)
{
	th_copy(slots, own_entries, sizeof(own_entries));
}

/* Map memory within reach of jumps from `near`. */
static unsigned char *map_near(const unsigned char *near, size_t bytes)
{
	/* below the code, or far above that of a static program, whose heap follows it */
	unsigned long at = (unsigned long)near - (1UL << 20);

	if (at < REACH)
		at += REACH + (REACH >> 1);

	for (unsigned int i = 0; i < 1000 && at > REACH; i++, at -= 1UL << 20) {
		long got = th_sys(__NR_mmap, at, bytes, 3, 0x100022 /* fixed, replaces nothing */,
				  -1, 0);

		if (!th_failed(got) && (unsigned long)got == at)
			return (unsigned char *)got;
		if (!th_failed(got))
			th_sys(__NR_munmap, got, bytes); /* a kernel without the flag */
	}
	return NULL;
}

/* Patch sites in this process alone, which copies each page that has sites. */
static bool patch(const struct text *text, const struct site *sites, unsigned int n,
		  const char *const *entries)
{
	size_t bytes = to_pages(TH_SLOTS_BYTES + island_size(n));
	unsigned char *start = page_of(text->start);
	unsigned char *slots = map_near(start, bytes);

	if (!slots)
		return false;
	th_copy(slots, entries, TH_SLOTS_BYTES);
	write_island(slots + TH_SLOTS_BYTES, &(struct way){.slots = slots}, sites, n);
	if (th_failed(th_sys(__NR_mprotect, slots, bytes, 5)) ||
	    th_failed(th_sys(__NR_mprotect, start, text->end - start, 7))) {
		th_sys(__NR_munmap, slots, bytes);
		return false;
	}
	lead_sites(slots + TH_SLOTS_BYTES, sites, n);
	th_sys(__NR_mprotect, start, text->end - start, text->protection);
	return true;
}

/* Drop sites of calls that no observer wants; return the number of the rest. */
static unsigned int keep_wanted(struct site *sites, unsigned int n)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < n; i++)
		if (sites[i].nr < 0 || (sites[i].nr < TH_CALLS && th_actions[sites[i].nr]))
			sites[kept++] = sites[i];
	return kept;
}

static void patch_alone(const struct text *text, const struct known *known, struct th_patched *done)
{
	size_t bytes = TH_MAX_SITES * sizeof(struct site);
	struct site *sites = th_map(bytes);

	if (!sites)
		return;
	unsigned int n = known ? known_sites(known, text, sites) : 0;

	n = keep_wanted(sites, n ? n : find_sites(text, sites, TH_MAX_SITES));
	if (n && patch(text, sites, n, own_entries))
		done->sites += n;
	else
		done->failed += n;
	th_sys(__NR_munmap, sites, bytes);
}

/* Patch the code of a static program; return the number of its sites, or 0 if that fails. */
unsigned int th_patch_text(const struct text *text, const char *const *entries)
{
	size_t bytes = TH_MAX_SITES * sizeof(struct site);
	struct site *sites = th_map(bytes);
	unsigned int n = 0;

	if (!sites)
		return 0;
	n = keep_wanted(sites, find_sites(text, sites, TH_MAX_SITES));
	if (n && !patch(text, sites, n, entries))
		n = 0;
	th_sys(__NR_munmap, sites, bytes);
	return n;
}

/* Patch the code of an object that was just mapped. */
void th_patch_later(const struct text *text)
{
	struct th_patched done = {0, 0};

	patch_alone(text, NULL, &done);
}

struct th_patched th_patch_all(const struct th_program *program)
{
	const struct link_map *untried = NULL;
	struct th_patched done = {0, 0};
	struct known_file file;
	struct text text;

	if (!&_r_debug)
		return done;
	known_open(&file, program);
	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
		if (!map->l_name || !is_patched(map->l_name) || !find_text(map, &text))
			continue;
		const struct known *known = known_object(&file, map);

		if (!known && th_starts(th_base(map->l_name), "libc.so.6"))
			untried = map;
		if (known && image_use(&file, known, &text))
			done.sites += known->count;
		else
			patch_alone(&text, known, &done);
	}
	known_close();
	if (done.failed || (untried && !th_check_calls(untried)))
		th_tell_incomplete();
	return done;
}
