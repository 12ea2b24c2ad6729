/* SPDX-License-Identifier: Apache-2.0 */
/* System-call sites of a loaded object: found by looking at all of its code, or by a list. */
#ifndef TRACEHINT_SITES_H
#define TRACEHINT_SITES_H

#include <link.h>
#include "core.h"

#define TH_MAX_SITES 1024

extern struct r_debug _r_debug __attribute__((weak, visibility("default")));

struct text {
	unsigned char *start, *end;
	int protection;
};

struct site {
	unsigned char *at;
	unsigned char length;  /* of what the jump replaces and what runs before it returns */
	unsigned char compare; /* bytes of the comparison that moves to the trampoline */
	int nr;		       /* -1: not known */
};

/* Whether a site begins at or before the `0f 05` at `p`. */
bool site_at(const struct text *text, unsigned char *p, struct site *site);
unsigned int find_sites(const struct text *text, struct site *sites, unsigned int room);
bool find_text(const struct link_map *map, struct text *text);
bool is_patched(const char *name);

/* site_cache.c: the sites of the object by the list that TRACEHINT_SITES names; 0: not in it. */
void cache_open(const struct th_program *program);
unsigned int cached_sites(const struct link_map *map, const struct text *text, struct site *sites);
void cache_close(void);

#endif
