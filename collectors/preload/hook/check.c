// SPDX-License-Identifier: Apache-2.0
/*
 * Checks that the calls of a C library pass through th_dispatch. The recorder has tried the library
 * of its own machine (collectors/preload/collector.py). In a process with one that the site file
 * does not have (a container, another root), its functions are called here, once as in a process
 * without threads and once as in one with threads. Their arguments make each of them fail in the
 * kernel; a call that arrives goes no further than th_dispatch.
 */
#include <elf.h>
#include <link.h>
#include "sites.h"

#define DT_GNU_HASH_TAG 0x6ffffef5
#define NOT_AN_ARGUMENT (-1L) /* not a valid descriptor, address or flag */

/* Functions for calls that the recorder observes (record/rows.inc); names with __ are internal. */
static const char *const functions[] = {
	"read",
	"write",
	"readv",
	"writev",
	"pread64",
	"pwrite64",
	"preadv64",
	"pwritev64",
	"open64",
	"openat64",
	"creat64",
	"close",
	"dup",
	"dup2",
	"fcntl64",
	"lseek64",
	"copy_file_range",
	"sendfile64",
	"splice",
	"ftruncate64",
	"truncate64",
	"fallocate64",
	"rename",
	"renameat",
	"link",
	"linkat",
	"symlink",
	"unlink",
	"unlinkat",
	"rmdir",
	"mkdir",
	"chdir",
	"fchdir",
	"execve",
	"__read_nocancel",
	"__write_nocancel",
	"__open64_nocancel",
	"__close_nocancel",
	"__pread64_nocancel",
};

struct symbols {
	unsigned long base;
	const unsigned int *hash;
	const Elf64_Sym *table;
	const char *names;
};

static bool find_symbols(const struct link_map *map, struct symbols *s)
{
	*s = (struct symbols){.base = map->l_addr};
	for (const Elf64_Dyn *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		unsigned long at =
			d->d_un.d_ptr < s->base ? s->base + d->d_un.d_ptr : d->d_un.d_ptr;

		if (d->d_tag == DT_GNU_HASH_TAG)
			s->hash = (const unsigned int *)at;
		else if (d->d_tag == DT_SYMTAB)
			s->table = (const Elf64_Sym *)at;
		else if (d->d_tag == DT_STRTAB)
			s->names = (const char *)at;
	}
	return s->hash && s->table && s->names;
}

/* The address of a symbol, or 0. */
static unsigned long find_symbol(const struct symbols *s, const char *name, unsigned char type)
{
	unsigned int hash = 5381, buckets = s->hash[0], first = s->hash[1];
	const unsigned int *bucket = s->hash + 4 + s->hash[2] * 2; /* after the Bloom filter */
	const unsigned int *chain = bucket + buckets;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	for (unsigned int i = bucket[hash % buckets]; i >= first; i++) {
		const Elf64_Sym *symbol = &s->table[i];

		if ((chain[i - first] | 1) == (hash | 1) && symbol->st_shndx &&
		    ELF64_ST_TYPE(symbol->st_info) == type &&
		    th_equal(s->names + symbol->st_name, name))
			return s->base + symbol->st_value;
		if (chain[i - first] & 1)
			return 0;
	}
	return 0;
}

static bool all_arrive(const struct symbols *s)
{
	for (unsigned int i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		unsigned long at = find_symbol(s, functions[i], STT_FUNC), before = th_checked;
		long (*call)(long, long, long, long, long, long) = (void *)at;
		const long no = NOT_AN_ARGUMENT;

		if (at)
			call(no, no, no, no, no, no);
		if (at && th_checked == before)
			return false;
	}
	return true;
}

/* Whether all calls of the C library pass through th_dispatch, with and without threads. */
bool th_check_calls(const struct link_map *map)
{
	unsigned char actions[TH_CALLS], quick[TH_QUICK];
	struct symbols s;

	if (!find_symbols(map, &s))
		return false;
	int *(*errno_at)(void) = (void *)find_symbol(&s, "__errno_location", STT_FUNC);
	char *single = (char *)find_symbol(&s, "__libc_single_threaded", STT_OBJECT);

	if (!errno_at || !find_symbol(&s, "read", STT_FUNC))
		return false;
	int error = *errno_at();

	th_copy(actions, th_actions, sizeof(actions));
	th_copy(quick, th_quick, sizeof(quick));
	__builtin_memset(th_actions, TH_ACT_CHECK, sizeof(th_actions));
	th_zero(th_quick, sizeof(th_quick));
	bool arrive = all_arrive(&s);

	if (arrive && single && *single) {
		*single = 0;
		arrive = all_arrive(&s);
		*single = 1;
	}
	th_copy(th_actions, actions, sizeof(actions));
	th_copy(th_quick, quick, sizeof(quick));
	*errno_at() = error;
	return arrive;
}
