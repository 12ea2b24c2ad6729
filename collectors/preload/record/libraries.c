// SPDX-License-Identifier: Apache-2.0
/*
 * Records the libraries that the loader mapped before this one ran: each as one open and one mapped
 * range, as if the calls of the loader had been recorded.
 */
#include <link.h>
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "record.h"

#define MAX_LIBRARIES 1024

extern struct r_debug _r_debug __attribute__((weak, visibility("default")));

void libraries_put(struct rec *rec)
{
	const struct link_map *map = &_r_debug ? _r_debug.r_map : NULL;
	struct statx facts;

	for (unsigned int i = 0; map && i < MAX_LIBRARIES; i++, map = map->l_next) {
		const char *name = map->l_name;

		if (!name || *name != '/' || th_starts(th_base(name), "libtracehint.so") ||
		    th_failed(th_sys(__NR_statx, TH_AT_FDCWD, name, 0,
				     STATX_BASIC_STATS | STATX_BTIME, &facts)))
			continue;
		struct th_episode *ep = episode_new(rec, -1, &facts, O_RDONLY | O_CLOEXEC, 0);

		if (!ep)
			return;
		ep->path = path_at(rec, TH_AT_FDCWD, name);
		ep->kind = TH_EPISODE;
		run_add(rec, ep, TH_OP(TH_READ, TH_HOW_MMAP, 1), 0, facts.stx_size);
		ep->close_ns = now_ticks();
	}
}
