// SPDX-License-Identifier: Apache-2.0
/* Reading the file of a metadata simulation: the work, then the numbers of each run. Nothing is
 * trusted (see input.c). */
#include "arrays.h"
#include "metadata.h"

#include <string.h>

#define MOST (1 << 28)
#define MOST_CORES (1 << 20)
#define MOST_SECONDS 1e9

static int counts_read(struct meta_work *w, struct file *f)
{
	const int64_t *count;

	if (format_read(f) || amounts(f, "counts", 5, &count, 0))
		return -1;
	for (int i = 0; i < 5; i++)
		if (count[i] > MOST)
			return complain("says more than can be", "counts");
	w->tasks = count[0], w->ops = count[1], w->deps = count[2], w->entries = count[3];
	if (count[4] < 1 || count[4] > MAX_SITES)
		return complain("no site, or more than 64", "counts");
	w->sites = count[4];
	return 0;
}

int meta_work_read(struct meta_work *w, struct file *f)
{
	memset(w, 0, sizeof(*w));
	if (counts_read(w, f))
		return -1;
	size_t ops = w->ops, sites = w->sites;
	if (begins(f, "opbegin", w->tasks, w->ops, &w->op_begin) ||
	    indices(f, "opkind", ops, &w->op_kind, 0, META_KINDS) ||
	    indices(f, "opentry", ops, &w->op_entry, NONE, w->entries) ||
	    numbers(f, "opsecs", ops, &w->op_seconds, MOST_SECONDS) ||
	    begins(f, "depbegin", w->tasks, w->deps, &w->dep_begin) ||
	    indices(f, "dep", w->deps, &w->dep, 0, w->tasks) ||
	    indices(f, "pin", w->tasks, &w->pin, NONE, w->sites) ||
	    indices(f, "home", w->entries, &w->home, 0, w->sites) ||
	    indices(f, "known", w->entries, &w->known, 0, 2) ||
	    indices(f, "cores", sites, &w->cores, 0, MOST_CORES) ||
	    numbers(f, "trip", sites * sites, &w->round_trip, MOST_SECONDS))
		return -1;
	int64_t cores = 0;
	for (size_t i = 0; i < sites; i++)
		cores += w->cores[i];
	if (cores < 1 || cores > MOST_CORES)
		return complain("no cores, or too many", "cores");
	for (size_t i = 0; i < ops; i++)
		if (w->op_kind[i] != META_COMPUTE && w->op_entry[i] == NONE)
			return complain("an operation without an entry", "opentry");
	for (int32_t i = 0; i < w->tasks; i++)
		if (w->pin[i] != NONE && !w->cores[w->pin[i]])
			return complain("a task at a site without cores", "pin");
	return 0;
}

int meta_settings_read(const double **set, const struct meta_work *w, struct file *f)
{
	if (f->at == f->size)
		return 0;
	if (numbers(f, "set", META_SETTINGS, set, MOST_SECONDS))
		return -1;
	if ((*set)[META_STRATEGY] >= STRATEGIES || (*set)[META_CENTRE] >= w->sites)
		return complain("a setting that cannot be", "set");
	return 1;
}
