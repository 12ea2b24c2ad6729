// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the system-call sites of the C library and the loader and leads them to th_entry. Three
 * forms have room for a jump of five bytes:
 *   mov $nr,%eax; syscall                   the mov becomes the jump, the syscall stays
 *   syscall; cmp $-4096 or -4095,%rax       the jump takes the place of both
 *   syscall; cmp $-4096,%eax                the same
 * All calls of glibc 2.31 to 2.41 that move data or names have one of them. No jump of glibc leads
 * to the comparison of the last two. Sites whose number is known and of no interest stay as they
 * are.
 */
#include <elf.h>
#include <link.h>
#include "sites.h"

#define TRAMPOLINE 96
#define REACH (1UL << 30) /* jumps reach 2 GiB; the library itself lies in between */
#define PAGE 4096UL

/* Objects whose sites are patched: names begin with these. */
static const char *const objects[] = {
	"libc.so.6",  "ld-linux-x86-64.so.2", "libpthread.so.0",
	"librt.so.1", "libaio.so.1",	      "liburing.so.2",
};

/* Whether a site begins at or before the `0f 05` at `p`. */
bool site_at(const struct text *text, unsigned char *p, struct site *site)
{
	if (p - 5 >= text->start && p[-5] == 0xb8 && !p[-2] && !p[-1] && p[-3] < 2) {
		site->at = p - 5;
		site->length = 7;
		site->compare = 0;
		site->nr = p[-4] | p[-3] << 8;
		return true;
	}
	if (p + 8 > text->end)
		return false;
	unsigned char *cmp = p + 2;
	unsigned int wide = *cmp == 0x48;

	if (cmp[wide] != 0x3d || cmp[wide + 1] > 1 || cmp[wide + 2] != 0xf0 ||
	    cmp[wide + 3] != 0xff || cmp[wide + 4] != 0xff)
		return false;
	site->at = p;
	site->compare = (unsigned char)(5 + wide);
	site->length = (unsigned char)(2 + site->compare);
	site->nr = -1;
	return true;
}

unsigned int find_sites(const struct text *text, struct site *sites, unsigned int room)
{
	const uint64_t ones = 0x0101010101010101ULL, high = 0x8080808080808080ULL;
	unsigned int n = 0;
	unsigned char *p = text->start;

	while (p + 9 < text->end && n < room) {
		uint64_t word;

		__builtin_memcpy(&word, p, 8);
		word ^= 0x0f * ones; /* bytes 0f become zero */
		if (!((word - ones) & ~word & high)) {
			p += 8;
			continue;
		}
		for (unsigned int i = 0; i < 8; i++)
			if (p[i] == 0x0f && p[i + 1] == 0x05 && site_at(text, p + i, &sites[n]) &&
			    n < room - 1)
				n++;
		p += 8;
	}
	return n;
}

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

/* See entry.S; `slots` hold the addresses of the two entries, near the trampoline. */
static void write_trampoline(unsigned char *at, const struct site *site, const unsigned char *slots)
{
	static const char down[] = "\x48\x8d\x64\x24\x80", up[] = "\x48\x8d\xa4\x24\x80\0\0\0";
	const unsigned char *back = site->at + site->length, *compare;

	if (site->nr >= 0) {
		at = put(at, "\xb8", 1);
		at = put(at, &site->nr, 4);
	}
	at = put(at, down, 5);
	at = put_relative(at, "\x4c\x8d\x1d", 3, back); /* lea back, %r11 */
	at = put_relative(at, "\xff\x15", 2, slots);	/* call *slot */
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
	at = put_relative(at, "\xff\x15", 2, slots + 8);
	at = put(at, up, 8);
	put_relative(at, "\xe9", 1, compare);
}

/* Memory that jumps from `near` reach. */
static unsigned char *map_near(const unsigned char *near, size_t bytes)
{
	unsigned long at = ((unsigned long)near & ~(PAGE - 1)) - (1UL << 20);

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

static bool patch(const struct text *text, const struct site *sites, unsigned int n)
{
	size_t bytes = (16 + (size_t)n * TRAMPOLINE + PAGE - 1) & ~(PAGE - 1);
	unsigned char *start = (unsigned char *)((unsigned long)text->start & ~(PAGE - 1));
	unsigned char *island = map_near(start, bytes);
	const char *entries[2] = {th_entry, th_fork_entry_after};

	if (!island)
		return false;
	th_copy(island, entries, sizeof(entries));
	for (unsigned int i = 0; i < n; i++)
		write_trampoline(island + 16 + i * TRAMPOLINE, &sites[i], island);
	if (th_failed(th_sys(__NR_mprotect, island, bytes, 5)) ||
	    th_failed(th_sys(__NR_mprotect, start, text->end - start, 7))) {
		th_sys(__NR_munmap, island, bytes);
		return false;
	}
	for (unsigned int i = 0; i < n; i++)
		put_relative(sites[i].at, "\xe9", 1, island + 16 + i * TRAMPOLINE);
	th_sys(__NR_mprotect, start, text->end - start, text->protection);
	return true;
}

/* The executable segment of a loaded object; false where it cannot be told. */
bool find_text(const struct link_map *map, struct text *text)
{
	const Elf64_Ehdr *head = (const void *)map->l_addr; /* shared objects begin with it */

	if (!map->l_addr || !th_same(head->e_ident,
				     "\x7f"
				     "ELF",
				     4))
		return false;
	const Elf64_Phdr *parts = (const void *)(map->l_addr + head->e_phoff);

	for (unsigned int i = 0; i < head->e_phnum; i++) {
		if (parts[i].p_type != PT_LOAD || !(parts[i].p_flags & PF_X))
			continue;
		text->start = (unsigned char *)(map->l_addr + parts[i].p_vaddr);
		text->end = text->start + parts[i].p_memsz;
		text->protection = parts[i].p_flags & PF_R ? 5 : 4;
		return true;
	}
	return false;
}

bool is_patched(const char *name)
{
	name = th_base(name);
	for (unsigned int i = 0; i < sizeof(objects) / sizeof(*objects); i++)
		if (th_starts(name, objects[i]))
			return true;
	return false;
}

/* Without those of calls that nobody wants to see. */
static unsigned int keep_wanted(struct site *sites, unsigned int n)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < n; i++)
		if (sites[i].nr < 0 || (sites[i].nr < TH_CALLS && th_actions[sites[i].nr]))
			sites[kept++] = sites[i];
	return kept;
}

struct th_patched th_patch_all(const struct th_program *program)
{
	struct th_patched done = {0, 0};
	size_t bytes = TH_MAX_SITES * sizeof(struct site);
	struct site *sites = &_r_debug ? th_map(bytes) : NULL;
	struct text text;

	if (!sites)
		return done;
	cache_open(program);
	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
		if (!map->l_name || !is_patched(map->l_name) || !find_text(map, &text))
			continue;
		unsigned int n = cached_sites(map, &text, sites);

		n = keep_wanted(sites, n ? n : find_sites(&text, sites, TH_MAX_SITES));
		if (n && patch(&text, sites, n))
			done.sites += n;
		else
			done.failed += n;
	}
	cache_close();
	th_sys(__NR_munmap, sites, bytes);
	return done;
}
