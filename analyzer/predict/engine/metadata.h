// SPDX-License-Identifier: Apache-2.0
/* Metadata over several sites: tasks look entries up and change them in registries, one per site,
 * each a queue. Four strategies decide which registries an operation visits, in order
 * (docs/explanation/sites.md). Seconds throughout.
 */
#ifndef TRACEHINT_METADATA_H
#define TRACEHINT_METADATA_H

#include "sim.h"

#define MAX_SITES 64
#define TENTHS 10

enum meta_kind { META_LOOKUP, META_UPDATE, META_COMPUTE, META_KINDS };
enum strategy { CENTRAL, REPLICATED, DECENTRAL, DECENTRAL_REPLICA, STRATEGIES };
/* Numbers of one run, in the order of the file (analyzer/predict/metadata/request.py). */
enum meta_setting {
	META_STRATEGY,
	META_CENTRE, /* site of the central registry, or of the agent that synchronises */
	META_LOOKUP_S,
	META_UPDATE_S,
	META_SYNC_S, /* the agent's work for an entry that it passes on */
	META_NEAR,   /* tasks start where what they read was made */
	META_SEED,
	META_SETTINGS
};

/* What is simulated: `pin` the site of a task or NONE, `home` of an entry under the decentralised
 * strategies, `known` 1: an entry that all registries hold from the start. */
struct meta_work {
	const int64_t *op_begin, *dep_begin;
	const int32_t *op_kind, *op_entry, *dep, *pin, *home, *known, *cores;
	const double *op_seconds, *round_trip;
	int32_t tasks, entries, sites;
	int64_t ops, deps;
};

struct site {
	double free, busy;	/* of the registry's queue */
	int64_t served, abroad; /* operations; round trips of its tasks to other sites */
	int32_t first, last;	/* tasks that wait for a core here */
	int32_t waiting, cores; /* their number; free cores */
	int32_t *list, fresh;	/* entries changed here since the agent came */
	int64_t room;
};

/* What a core's next event is. */
enum phase { BEGINS, COMPUTED, ARRIVES, RETURNS };

/* One core: the task, the operation, the registry that this leg of the operation goes to. */
struct worker {
	int32_t task, site, leg, at; /* at: site of the registry that it is on its way to */
	int32_t parked;		     /* the next one that waits for the same entry */
	int64_t op;
	enum phase phase;
};

/* The agent of the replicated strategy: it asks all sites, then tells all sites, and again. */
struct agent {
	int32_t site, step; /* step: below `sites` asking, from there telling */
	bool arrives;
	double begun, round;   /* of this round; seconds of an empty one */
	int32_t *entry, *from; /* what it carries */
	int64_t carried, room;
};

struct meta {
	const struct meta_work *w;
	const double *set;
	struct heap heap; /* workers, then the agent */
	struct worker *worker;
	struct agent agent;
	struct site site[MAX_SITES];
	int32_t *missing, *near, *next; /* by task: producers to wait for, last one's site, queue */
	int32_t *made, *parked;		/* by entry: site, NONE: not yet; workers that wait */
	double *when;			/* it was made */
	uint64_t *seen;			/* the sites whose registry holds it, as bits */
	int32_t idle[MAX_SITES];	/* first free worker of a site; the next in `parked` */
	int32_t workers, done;
	int64_t ops, all_ops, stale_count;
	double now, stale_sum, stale_most, tenth[TENTHS];
};

/* metadata_input.c */
int meta_work_read(struct meta_work *w, struct file *f);
int meta_settings_read(const double **set, const struct meta_work *w, struct file *f);

/* metadata.c: all runs of a file; the exit code. */
int metadata(struct file *f);
double service(struct meta *m, int32_t site, double seconds);
/* An entry has become visible at a site: who waited there goes on. */
void entry_seen(struct meta *m, int32_t entry, int32_t site);
double trip(const struct meta *m, int32_t from, int32_t to);

/* metadata_sync.c: the agent. */
void agent_start(struct meta *m);
void agent_event(struct meta *m);
/* An entry has changed at a site. */
void entry_fresh(struct meta *m, int32_t entry, int32_t site);

#endif
