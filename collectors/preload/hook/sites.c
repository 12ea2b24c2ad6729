// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the system-call sites of the C library and the loader. These forms have space for a jump of
 * five bytes, which leads to th_entry (patch.c):
 *   mov $nr,%eax; syscall                   the jump replaces the mov, the syscall stays
 *   syscall; cmp $-4096 or -4095,%rax       the jump replaces both
 *   syscall; cmp $-4096,%eax                the same
 *   mov N(%rsp),%rax; syscall               as the first: calls with cancellation of glibc 2.41 and
 *                                           later, in a process without threads
 *   mov N(%rbp),%rax; syscall               the same with frame pointers: the jump is a byte longer
 * In a process with threads the same glibc makes those calls in __syscall_cancel_arch, whose
 * syscall must not be moved: cancellation depends on its address. The only call of that function is
 * redirected to th_cancel_entry. All calls of glibc 2.31 to 2.40 that move data or names have one
 * of the first three forms. No jump in glibc leads to the comparison of those that have one. Sites
 * with a known number of no interest stay as they are.
 */
#include <elf.h>
#include <link.h>
#include "sites.h"

/* Prefixes of the names of objects whose sites are patched. */
static const char *const objects[] = {
	"libc.so.6",  "ld-linux-x86-64.so.2", "libpthread.so.0",
	"librt.so.1", "libaio.so.1",	      "liburing.so.2",
};

/* Return the size of an instruction before the syscall `p` that loads the number from the stack. */
static unsigned char stack_load(const struct text *text, const unsigned char *p)
{
	if (p - 5 >= text->start && th_same(p - 5, "\x48\x8b\x44\x24", 4))
		return 5; /* mov N(%rsp), %rax */
	if (p - 4 >= text->start && th_same(p - 4, "\x48\x8b\x45", 3))
		return 4; /* mov N(%rbp), %rax */
	return 0;
}

/* __syscall_cancel_arch, an assembly function; a build for CET begins it with endbr64. */
static const char cancel_head[] = "\x8b\x07\xf6\x07\x08\x0f\x85"; /* then the target of the jump */
static const char cancel_code[] =
	"\x49\x89\xfb\x48\x89\xf0\x48\x89\xd7\x48\x89\xce\x4c\x89\xc2\x4d\x89\xca"
	"\x4c\x8b\x44\x24\x08\x4c\x8b\x4c\x24\x10\x4c\x89\x5c\x24\x08\x0f\x05\xc3";
static const char endbr64[] = "\xf3\x0f\x1e\xfa";
#define CANCEL_HEAD (sizeof(cancel_head) - 1 + 4)
#define CANCEL_MARK (CANCEL_HEAD + sizeof(cancel_code) - 1 - 3) /* offset of the syscall */
#define CANCEL_NEAR (1L << 18)					/* maximum distance of its caller */

static unsigned char *cancel_at(const struct text *text, unsigned char *p)
{
	unsigned char *head = p - CANCEL_MARK;

	if (head < text->start || p + 3 > text->end ||
	    !th_same(head, cancel_head, sizeof(cancel_head) - 1) ||
	    !th_same(head + CANCEL_HEAD, cancel_code, sizeof(cancel_code) - 1))
		return NULL;
	return head - 4 >= text->start && th_same(head - 4, endbr64, 4) ? head - 4 : head;
}

/* Find the only call of that function. */
static bool cancel_site(const struct text *text, unsigned char *p, struct site *site)
{
	unsigned char *function = cancel_at(text, p), *call = NULL;

	if (!function)
		return false;
	for (unsigned char *at = text->start; at + 5 <= text->end; at++) {
		int32_t to;

		if (*at != 0xe8 || at < function - CANCEL_NEAR || at > function + CANCEL_NEAR)
			continue;
		__builtin_memcpy(&to, at + 1, 4);
		if (at + 5 + to != function)
			continue;
		if (call)
			return false; /* unlike all known versions of glibc */
		call = at;
	}
	*site = (struct site){.at = call, .length = 5, .nr = -1, .cancel = function};
	return call;
}

unsigned char *site_mark(const struct site *site)
{
	if (!site->cancel)
		return site->at + site->before;
	return site->cancel + (th_same(site->cancel, endbr64, 4) ? 4 : 0) + CANCEL_MARK;
}

/* Whether a site begins at or before the `0f 05` at `p`. */
bool site_at(const struct text *text, unsigned char *p, struct site *site)
{
	bool has_number = p - 5 >= text->start && p[-5] == 0xb8 && !p[-2] && !p[-1] && p[-3] < 2;
	unsigned char before = has_number ? 5 : stack_load(text, p);

	site->cancel = NULL;
	if (before) {
		site->at = p - before;
		site->length = before + 2;
		site->compare = 0;
		site->before = before;
		site->nr = has_number ? p[-4] | p[-3] << 8 : -1;
		return true;
	}
	if (p + 8 > text->end)
		return false;
	if (p[2] == 0xc3)
		return cancel_site(text, p, site);
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

/* Find the executable segment of a loaded object; false: none found. */
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
