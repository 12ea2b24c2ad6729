/* SPDX-License-Identifier: Apache-2.0 */
/* System-call sites of a loaded object: their places and their redirection to th_entry. */
#ifndef TRACEHINT_SITES_H
#define TRACEHINT_SITES_H

#include <link.h>
#include "core.h"

#define TH_MAX_SITES 1024
#define TH_PAGE 4096UL
#define TH_BUILD_ID 20 /* bytes */

extern struct r_debug _r_debug __attribute__((weak, visibility("default")));

struct text {
	unsigned char *start, *end;
	int protection;
};

struct site {
	unsigned char *at;
	unsigned char length;  /* bytes of the site; the trampoline returns to its end */
	unsigned char compare; /* bytes of the comparison that moves to the trampoline */
	unsigned char before;  /* bytes before the `0f 05` */
	int nr;		       /* -1: not known */
	/* NULL, or __syscall_cancel_arch of glibc 2.41 and later: the site is its call */
	unsigned char *cancel;
};

static inline size_t to_pages(size_t bytes)
{
	return (bytes + TH_PAGE - 1) & ~(TH_PAGE - 1);
}

static inline unsigned char *page_of(const unsigned char *at)
{
	return (unsigned char *)((unsigned long)at & ~(TH_PAGE - 1));
}

/* sites.c */
/* Whether a site begins at or before the `0f 05` at `p`. */
bool site_at(const struct text *text, unsigned char *p, struct site *site);
unsigned char *site_mark(const struct site *site); /* address of its `0f 05` */
unsigned int find_sites(const struct text *text, struct site *sites, unsigned int room);
bool find_text(const struct link_map *map, struct text *text);
bool is_patched(const char *name);

/* Entries of entry.S: for a call, after a call that creates a process, for a cancellable call. */
enum entry { ENTRY, ENTRY_FORK_AFTER, ENTRY_CANCEL, ENTRIES };

#define TH_SLOTS_BYTES (8UL * ENTRIES) /* their addresses */
#define TH_DEBUG_MAP 8		       /* r_map of struct r_debug */

/* How trampolines find the entries; distances are relative to the trampolines. */
struct way {
	const unsigned char *slots; /* the entries' addresses; NULL: use `list` */
	const unsigned char *list;  /* points to the loader's first object; the library is third */
};

/* patch.c: an island has one stub per entry and one trampoline per site. */
size_t island_size(unsigned int sites);
void write_island(unsigned char *island, const struct way *way, const struct site *sites,
		  unsigned int n);
void lead_sites(unsigned char *island, const struct site *sites, unsigned int n);
void write_slots(unsigned char *slots);
void entries_of(unsigned int entry[ENTRIES]); /* their offsets in the library */

/*
 * The site file, which TRACEHINT_SITES names and known_make.c makes once per recording. For the C
 * library and the loader, identified by build identifier, it has the offsets of their sites and
 * their patched code. Processes map that code over their own (known.c), so no page is copied.
 */
#define TH_KNOWN_MAGIC 0x464d4148U
#define TH_KNOWN_MOST 8		     /* objects */
#define TH_KNOWN_APART (512UL << 20) /* distance from an object's island to its code */

struct known {
	unsigned char id[TH_BUILD_ID];
	unsigned int count;	/* of sites */
	unsigned int sites_at;	/* in the file: 32-bit offsets of `0f 05` from the code's start */
	unsigned int island_at; /* in the file: the trampolines; 0: after the code */
	unsigned int text_at, text_bytes; /* in the file: the code, whole pages */
	/* from the code's first page: to space for the entries' addresses after the object's data;
	 * 0: the loader, whose list of objects (r_map) is at list_at */
	unsigned int slots_at, list_at;
};

struct known_file {
	unsigned int magic, objects;
	unsigned int entry[ENTRIES];
	struct known object[TH_KNOWN_MOST];
};

const unsigned char *build_id(const unsigned char *base); /* of the object at `base`, or NULL */
void known_open(struct known_file *file, const struct th_program *program);
const struct known *known_object(const struct known_file *file, const struct link_map *map);
unsigned int known_sites(const struct known *known, const struct text *text, struct site *sites);
bool image_use(const struct known_file *file, const struct known *known, const struct text *text);
void known_close(void);

/* check.c */
bool th_check_calls(const struct link_map *map);

#endif
