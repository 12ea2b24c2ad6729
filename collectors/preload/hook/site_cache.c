// SPDX-License-Identifier: Apache-2.0
/*
 * A list of the sites in the C library and the loader, by build identifier: looking for them takes
 * over a millisecond per program, and touches all of their code. The list is made once, by
 * the recorder. What it says is looked at again before it is used: a wrong list costs calls that
 * are not seen, never a program.
 */
#include <elf.h>
#include <linux/fcntl.h>
#include "sites.h"

#define MAGIC 0x45544953U /* "SITE" */
#define MAX_LIST 16384
#define ID 20 /* bytes of a build identifier */

struct object {
	unsigned char id[ID];
	unsigned int count;
	/* offsets of the `0f 05` from the beginning of the code, 32 bits each */
};

static unsigned int *list;
static long list_bytes;

/* The build identifier of a loaded object. */
static const unsigned char *build_id(const struct link_map *map)
{
	const Elf64_Ehdr *head = (const void *)map->l_addr;
	const Elf64_Phdr *parts = (const void *)(map->l_addr + head->e_phoff);

	for (unsigned int i = 0; i < head->e_phnum; i++) {
		const char *at = (const char *)map->l_addr + parts[i].p_vaddr;
		const char *end = at + parts[i].p_memsz;

		while (parts[i].p_type == PT_NOTE && at + sizeof(Elf64_Nhdr) < end) {
			const Elf64_Nhdr *note = (const void *)at;
			size_t name = (note->n_namesz + 3UL) & ~3UL;

			if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz == ID)
				return (const unsigned char *)at + sizeof(*note) + name;
			at += sizeof(*note) + name + ((note->n_descsz + 3UL) & ~3UL);
		}
	}
	return NULL;
}

void cache_open(const struct th_program *program)
{
	const char *path = th_variable(program->envp, TH_SITES);
	long fd = path ? th_sys(__NR_open, path, O_RDONLY | O_CLOEXEC, 0) : -1;

	if (fd < 0)
		return;
	list = th_map(MAX_LIST);
	if (list)
		list_bytes = th_sys(__NR_read, fd, list, MAX_LIST);
	th_sys(__NR_close, fd);
	if (list_bytes < 4 || list[0] != MAGIC)
		list_bytes = 0;
}

void cache_close(void)
{
	if (list)
		th_sys(__NR_munmap, list, MAX_LIST);
	list = NULL;
	list_bytes = 0;
}

unsigned int cached_sites(const struct link_map *map, const struct text *text, struct site *sites)
{
	const unsigned char *id = list_bytes ? build_id(map) : NULL;
	const char *at = (const char *)(list + 1), *end = (const char *)list + list_bytes;
	unsigned int n = 0;

	while (id && at + sizeof(struct object) <= end) {
		const struct object *object = (const void *)at;
		const unsigned int *offsets = (const void *)(object + 1);

		at = (const char *)(offsets + object->count);
		if (object->count > TH_MAX_SITES || at > end)
			return 0;
		if (!th_same(object->id, id, ID))
			continue;
		for (unsigned int i = 0; i < object->count; i++) {
			unsigned char *p = text->start + offsets[i];

			if (p + 9 < text->end && p[0] == 0x0f && p[1] == 0x05 &&
			    site_at(text, p, &sites[n]))
				n++;
		}
		return n;
	}
	return 0;
}

static bool put_all(long fd, const void *bytes, size_t n)
{
	return th_sys(__NR_write, fd, bytes, n) == (long)n;
}

__attribute__((visibility("default"))) int tracehint_sites(int fd);

/* Write the list for the objects of this process to `fd`; returns how many objects. */
int tracehint_sites(int fd)
{
	const unsigned int magic = MAGIC;
	size_t bytes = TH_MAX_SITES * (sizeof(struct site) + 4);
	struct site *sites = &_r_debug ? th_map(bytes) : NULL;
	int objects = 0;
	struct text text;

	if (!sites || !put_all(fd, &magic, sizeof(magic)))
		return 0;
	unsigned int *offsets = (unsigned int *)(sites + TH_MAX_SITES);

	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
		if (!map->l_name || !is_patched(map->l_name) || !find_text(map, &text) ||
		    !build_id(map))
			continue;
		struct object object = {.count = find_sites(&text, sites, TH_MAX_SITES)};

		th_copy(object.id, build_id(map), ID);
		for (unsigned int i = 0; i < object.count; i++)
			offsets[i] = (unsigned int)(sites[i].at - text.start) +
				     (sites[i].nr < 0 ? 0 : 5);
		if (put_all(fd, &object, sizeof(object)) &&
		    put_all(fd, offsets, object.count * 4UL))
			objects++;
	}
	th_sys(__NR_munmap, sites, bytes);
	return objects;
}
