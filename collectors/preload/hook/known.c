/*
 * Uses the site file. A search for sites takes more than a millisecond per program, and patching
 * them copies each of their pages; mapping patched code takes some microseconds. Each site of a
 * list is verified before it is used; patched code is identified by its build identifier.
 */
#include <elf.h>
#include <linux/fcntl.h>
#include "../trusted.h"
#include "sites.h"

#define MAP_PRIVATE 2
#define MAP_FIXED 0x10
#define MAP_FIXED_NOREPLACE 0x100000

static int fd = -1;

const unsigned char *build_id(const unsigned char *base)
{
	const Elf64_Ehdr *head = (const void *)base;
	const Elf64_Phdr *parts = (const void *)(base + head->e_phoff);

	for (unsigned int i = 0; i < head->e_phnum; i++) {
		const unsigned char *at = base + parts[i].p_vaddr;
		const unsigned char *end = at + parts[i].p_memsz;

		while (parts[i].p_type == PT_NOTE && at + sizeof(Elf64_Nhdr) < end) {
			const Elf64_Nhdr *note = (const void *)at;
			size_t name = (note->n_namesz + 3UL) & ~3UL;

			if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz == TH_BUILD_ID)
				return at + sizeof(*note) + name;
			at += sizeof(*note) + name + ((note->n_descsz + 3UL) & ~3UL);
		}
	}
	return NULL;
}

void known_open(struct known_file *file, const struct th_program *program)
{
	const char *path = th_variable(program->envp, TH_SITES);

	fd = path ? (int)th_open_trusted(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || th_sys(__NR_pread64, fd, file, sizeof(*file), 0) != sizeof(*file) ||
	    file->magic != TH_KNOWN_MAGIC || file->objects > TH_KNOWN_MOST)
		file->objects = 0;
}

void known_close(void)
{
	if (fd >= 0)
		th_sys(__NR_close, fd);
	fd = -1;
}

const struct known *known_object(const struct known_file *file, const struct link_map *map)
{
	const unsigned char *id =
		file->objects ? build_id((const unsigned char *)map->l_addr) : NULL;

	for (unsigned int i = 0; id && i < file->objects; i++)
		if (th_same(file->object[i].id, id, TH_BUILD_ID))
			return &file->object[i];
	return NULL;
}

unsigned int known_sites(const struct known *known, const struct text *text, struct site *sites)
{
	size_t bytes = TH_MAX_SITES * sizeof(unsigned int);
	unsigned int n = 0, *offsets = th_map(bytes);
	long got = -1;

	if (offsets && known->count <= TH_MAX_SITES)
		got = th_sys(__NR_pread64, fd, offsets, known->count * sizeof(*offsets),
			     known->sites_at);
	for (unsigned int i = 0; got == (long)(known->count * sizeof(*offsets)) && i < known->count;
	     i++) {
		unsigned char *p = text->start + offsets[i];

		if (p + 9 < text->end && p[0] == 0x0f && p[1] == 0x05 &&
		    site_at(text, p, &sites[n]))
			n++;
	}
	if (offsets)
		th_sys(__NR_munmap, offsets, bytes);
	return n;
}

static bool map_at(unsigned char *at, size_t bytes, int protection, int flags, long from)
{
	long got = th_sys(__NR_mmap, at, bytes, protection, MAP_PRIVATE | flags, fd, from);

	if (!th_failed(got) && got != (long)at) /* a kernel without MAP_FIXED_NOREPLACE */
		th_sys(__NR_munmap, got, bytes);
	return got == (long)at;
}

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

/* Whether the stubs find the entries: the library must be the third in the loader's list. */
static bool is_third(const unsigned char *list)
{
	const struct link_map *map = *(const struct link_map *const *)list;

	for (unsigned int i = 0; map && i < 2; i++)
		map = map->l_next;
	return map && map->l_addr == (unsigned long)__ehdr_start;
}

static bool way_ready(const struct known_file *file, const struct known *known,
		      unsigned char *start)
{
	unsigned int entry[ENTRIES];
	uint64_t *slots = (uint64_t *)(start + known->slots_at);

	if (known->slots_at && !slots[ENTRY] && !slots[ENTRY_FORK_AFTER] && !slots[ENTRY_CANCEL]) {
		write_slots((unsigned char *)slots);
		return true;
	}
	entries_of(entry);
	return known->list_at && th_same(file->entry, entry, sizeof(entry)) &&
	       is_third(start + known->list_at);
}

/* Map the patched code over that of the object. */
bool image_use(const struct known_file *file, const struct known *known, const struct text *text)
{
	unsigned char *start = page_of(text->start), *island = start - TH_KNOWN_APART;
	size_t bytes = to_pages((size_t)(text->end - start));
	size_t apart = known->island_at ? to_pages(island_size(known->count)) : 0;

	if (!known->text_bytes || bytes != known->text_bytes ||
	    (unsigned long)start < TH_KNOWN_APART || !way_ready(file, known, start) ||
	    (apart && !map_at(island, apart, 5, MAP_FIXED_NOREPLACE, known->island_at)))
		return false;
	if (map_at(start, bytes, text->protection, MAP_FIXED, known->text_at))
		return true;
	if (apart)
		th_sys(__NR_munmap, island, apart);
	return false;
}
