// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the system-call sites of the C library and the loader. Three forms have room for a jump of
 * five bytes, which leads to th_entry (patch.c):
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
