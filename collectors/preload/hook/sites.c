// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the system-call sites of the C library and the loader. Four forms have room for a jump of
 * five bytes, which leads to th_entry (patch.c):
 *   mov $nr,%eax; syscall                   the mov becomes the jump, the syscall stays
 *   syscall; cmp $-4096 or -4095,%rax       the jump takes the place of both
 *   syscall; cmp $-4096,%eax                the same
 *   mov N(%rsp),%rax; syscall; pop; ret     as the first: the calls that glibc 2.41 can cancel, in a
 *                                           process without threads
 * All calls of glibc 2.31 to 2.40 that move data or names have one of the first three. No jump of
 * glibc leads to the comparison of those with one. Sites whose number is known and of no interest stay as they
 * are.
 */
#include <elf.h>
#include <link.h>
#include "sites.h"

/* Objects whose sites are patched: names begin with these. */
static const char *const objects[] = {
	"libc.so.6",  "ld-linux-x86-64.so.2", "libpthread.so.0",
	"librt.so.1", "libaio.so.1",	      "liburing.so.2",
};

/* The number is an argument on the stack; `p`: the syscall. */
static bool takes_number(const struct text *text, const unsigned char *p)
{
	return p - 5 >= text->start && p + 4 <= text->end && p[-5] == 0x48 && p[-4] == 0x8b &&
	       p[-3] == 0x44 && p[-2] == 0x24 && (p[2] == 0x5b || p[2] == 0x5d) && p[3] == 0xc3;
}

bool any_cancels(const struct site *sites, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (sites[i].nr < 0 && sites[i].before)
			return true;
	return false;
}

/* Whether a site begins at or before the `0f 05` at `p`. */
bool site_at(const struct text *text, unsigned char *p, struct site *site)
{
	bool told = p - 5 >= text->start && p[-5] == 0xb8 && !p[-2] && !p[-1] && p[-3] < 2;

	if (told || takes_number(text, p)) {
		site->at = p - 5;
		site->length = 7;
		site->compare = 0;
		site->before = 5;
		site->nr = told ? p[-4] | p[-3] << 8 : -1;
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
	site->before = 0;
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
