/*
 * Makes the site file (sites.h) in the recorder. The code is read from the objects' files, because
 * that of this process may be patched already.
 */
#include <elf.h>
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "sites.h"

#define AT_EMPTY_PATH 0x1000
#define MAP_PRIVATE_NORESERVE 0x4022

/* The mapped file of an object, and a copy of its code within reach of its trampolines. */
struct making {
	unsigned char *base; /* of the file */
	size_t size;
	unsigned char *room; /* island ... code */
	size_t room_bytes;
	struct text text; /* in `room` */
	const Elf64_Phdr *code;
	struct site *sites;
	unsigned int *offsets;
};

static bool map_file(struct making *m, const char *path)
{
	long fd = th_sys(__NR_open, path, O_RDONLY | O_CLOEXEC, 0), at = -1;
	struct statx facts;

	if (th_failed(fd))
		return false;
	if (!th_failed(th_sys(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_SIZE, &facts)) &&
	    facts.stx_size > sizeof(Elf64_Ehdr))
		at = th_sys(__NR_mmap, 0, facts.stx_size, 1, 2 /* private */, fd, 0);
	th_sys(__NR_close, fd);
	if (th_failed(at))
		return false;
	m->base = (unsigned char *)at;
	m->size = facts.stx_size;
	return true;
}

/* Return the code segment if it has the same offset in file and memory, as all glibc objects do. */
static const Elf64_Phdr *code_of(const struct making *m)
{
	const Elf64_Ehdr *head = (const void *)m->base;
	const Elf64_Phdr *parts = (const void *)(m->base + head->e_phoff);

	if (head->e_phoff + head->e_phnum * sizeof(*parts) > m->size)
		return NULL;
	for (unsigned int i = 0; i < head->e_phnum; i++)
		if (parts[i].p_type == PT_LOAD && (parts[i].p_flags & PF_X))
			return parts[i].p_offset == parts[i].p_vaddr &&
					       parts[i].p_filesz == parts[i].p_memsz &&
					       parts[i].p_offset + parts[i].p_filesz <= m->size
				       ? &parts[i]
				       : NULL;
	return NULL;
}

static bool copy_code(struct making *m)
{
	unsigned char *from = page_of(m->base + m->code->p_offset);
	unsigned char *end = m->base + m->code->p_offset + m->code->p_filesz;
	size_t bytes = to_pages((size_t)(end - from));
	size_t whole =
		m->base + m->size < from + bytes ? (size_t)(m->base + m->size - from) : bytes;

	m->room_bytes = TH_KNOWN_APART + bytes;
	long at = th_sys(__NR_mmap, 0, m->room_bytes, 3, MAP_PRIVATE_NORESERVE, -1, 0);

	if (th_failed(at))
		return false;
	m->room = (unsigned char *)at;
	unsigned char *to = m->room + TH_KNOWN_APART;

	th_copy(to, from, whole);
	m->text.start = to + (m->base + m->code->p_offset - from);
	m->text.end = to + (end - from);
	return true;
}

static unsigned int drop_unwanted_sites(struct site *sites, unsigned int n)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < n; i++)
		if (sites[i].nr < 0 || th_wanted_by_any(sites[i].nr))
			sites[kept++] = sites[i];
	return kept;
}

static bool put_at(long fd, const void *bytes, size_t n, size_t at)
{
	return th_sys(__NR_pwrite64, fd, bytes, n, at) == (long)n;
}

/* Return the end of an object's data; the rest of its last page is unused. */
static unsigned long data_end(const struct making *m)
{
	const Elf64_Ehdr *head = (const void *)m->base;
	const Elf64_Phdr *parts = (const void *)(m->base + head->e_phoff);
	unsigned long end = 0;

	for (unsigned int i = 0; i < head->e_phnum; i++)
		if (parts[i].p_type == PT_LOAD && (parts[i].p_flags & PF_W))
			end = parts[i].p_vaddr + parts[i].p_memsz;
	return end;
}

/* Use slots after the data or, in the loader, which uses that space, its list; false: neither. */
static bool find_way(const struct making *m, const struct link_map *map, struct known *known)
{
	unsigned long first = m->code->p_vaddr & ~(TH_PAGE - 1), end = data_end(m);
	unsigned long slots = to_pages(end) - TH_SLOTS_BYTES;
	unsigned long list = (unsigned long)&_r_debug + TH_DEBUG_MAP - map->l_addr;

	if (list > first && list < end)
		known->list_at = (unsigned int)(list - first);
	else if (slots >= end && slots > first && !th_starts(th_base(map->l_name), "ld-"))
		known->slots_at = (unsigned int)(slots - first);
	return known->list_at || known->slots_at;
}

/* Write the trampolines: after the code if its last page has space for them, else apart. */
static bool put_island(struct making *m, long fd, struct known *known)
{
	unsigned char *start = page_of(m->text.start), *island = m->room;
	unsigned char *behind = (unsigned char *)(((unsigned long)m->text.end + 15) & ~15UL);
	size_t bytes = island_size(known->count);
	struct way way = {.slots = known->slots_at ? start + known->slots_at : NULL,
			  .list = start + known->list_at};

	if (behind + bytes <= start + known->text_bytes) {
		island = behind;
		known->island_at = 0;
	}
	write_island(island, &way, m->sites, known->count);
	lead_sites(island, m->sites, known->count);
	return !known->island_at || put_at(fd, island, to_pages(bytes), known->island_at);
}

/* Write list, trampolines and code to the file at `*end`, and advance it. */
static bool put_object(struct making *m, const struct link_map *map, long fd, struct known *known,
		       size_t *end)
{
	unsigned char *start = page_of(m->text.start);
	bool cancels = false;

	th_copy(known->id, build_id(m->base), TH_BUILD_ID);
	known->count = find_sites(&m->text, m->sites, TH_MAX_SITES);
	known->count = drop_unwanted_sites(m->sites, known->count);
	for (unsigned int i = 0; i < known->count; i++) {
		cancels |= !!m->sites[i].cancel;
		m->offsets[i] = (unsigned int)(site_mark(&m->sites[i]) - m->text.start);
	}
	known->sites_at = (unsigned int)*end;
	known->island_at = known->sites_at + (unsigned int)to_pages(known->count * 4UL);
	known->text_at = known->island_at + (unsigned int)to_pages(island_size(known->count));
	known->text_bytes = (unsigned int)to_pages((size_t)(m->text.end - start));
	*end = known->text_at + known->text_bytes;
	/* the stubs that use the loader's list change rcx, an argument of cancellable calls */
	return find_way(m, map, known) && (known->slots_at || !cancels) &&
	       put_island(m, fd, known) &&
	       put_at(fd, m->offsets, known->count * 4UL, known->sites_at) &&
	       put_at(fd, start, known->text_bytes, known->text_at);
}

static bool make(struct making *m, const struct link_map *map, long fd, struct known *known,
		 size_t *end)
{
	bool done = map_file(m, map->l_name);

	m->code = done ? code_of(m) : NULL;
	done = m->code && build_id(m->base) && copy_code(m) && put_object(m, map, fd, known, end);
	if (m->room)
		th_sys(__NR_munmap, m->room, m->room_bytes);
	if (m->base)
		th_sys(__NR_munmap, m->base, m->size);
	m->room = m->base = NULL;
	return done;
}

__attribute__((visibility("default"))) int tracehint_sites(int fd);

/* Write the site file for the objects of this process to the empty `fd`; returns their number. */
int tracehint_sites(int fd)
{
	size_t bytes = TH_MAX_SITES * (sizeof(struct site) + 4), end = TH_PAGE;
	struct known_file file = {.magic = TH_KNOWN_MAGIC};
	unsigned int wanted = 0;
	struct making m = {.sites = &_r_debug ? th_map(bytes) : NULL};

	if (!m.sites)
		return 0;
	m.offsets = (unsigned int *)(m.sites + TH_MAX_SITES);
	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
		if (!map->l_name || !is_patched(map->l_name) || file.objects == TH_KNOWN_MOST)
			continue;
		wanted++;
		if (make(&m, map, fd, &file.object[file.objects], &end))
			file.objects++;
	}
	th_sys(__NR_munmap, m.sites, bytes);
	entries_of(file.entry);
	return file.objects == wanted && put_at(fd, &file, sizeof(file), 0) ? (int)file.objects : 0;
}
