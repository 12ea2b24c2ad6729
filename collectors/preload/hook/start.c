// SPDX-License-Identifier: Apache-2.0
/* Constructor of the library, which the loader calls before the program begins. */
#include "sites.h"

#define MAX_OBJECTS 1024

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

/*
 * With the libraries of two installations in one process only one may patch sites: each would
 * return into the other's jumps. It is the first in the loader's list.
 */
static bool is_first(void)
{
	const struct link_map *map = &_r_debug ? _r_debug.r_map : NULL;

	for (unsigned int i = 0; map && i < MAX_OBJECTS; i++, map = map->l_next)
		if (map->l_name && th_starts(th_base(map->l_name), "libtracehint.so"))
			return map->l_addr == (unsigned long)__ehdr_start;
	return true;
}

__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
	struct th_program program = {argc, argv, envp};

	if (!is_first())
		return;
	th_state = th_map_wiped(sizeof(*th_state));
	if (!th_state) {
		th_dispatch_missed(&program);
		return;
	}
	th_exec_start(&program);
	if (th_dispatch_start(&program))
		th_patch_all(&program);
}
