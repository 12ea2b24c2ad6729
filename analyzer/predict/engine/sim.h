// SPDX-License-Identifier: Apache-2.0
/* tracehint-sim: shared declarations. The model is described in docs/explanation/predict.md, the
 * format of its two input files in input.c. Units are seconds, bytes and bytes per second; a rate
 * of 0 means no limit.
 */
#ifndef TRACEHINT_SIM_H
#define TRACEHINT_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORMAT 10 /* of the input files; analyzer/predict/simulator.py has the same number */
#define LEG_BITS 7
#define MAX_LEGS (1 << LEG_BITS) /* resources per transfer: six per server and a few more */
#define MAX_SERVERS 12		 /* servers per transfer; with more, the pool of all is used */
#define MAX_COPIES 64
#define MAX_SITE_LEGS 16 /* links of one transfer to all servers; fits into MAX_LEGS */
#define NONE (-1)
#define ANYWHERE (-2) /* in a plan: the task runs on any idle node */

enum op_kind { OP_READ, OP_WRITE, OP_COMPUTE, OP_KINDS };
enum law { LAW_ROTATE, LAW_RANDOM, LAW_LOCAL, LAW_ONE, LAW_STRIPE, LAW_NODE, LAW_GROUP, LAWS };
enum scheduler { BY_CHANCE, BY_BYTES, BY_PLAN, SCHEDULERS };
/* Tasks that prefer another node and that an idle node may still run. */
enum steal { STEAL_NOTHING, STEAL_ANY, STEAL_UNPLANNED };
/* Kinds of time of a task. */
enum spent { IN_COMPUTE, IN_NETWORK, IN_DISK, IN_METADATA, IN_REQUESTS, IN_QUEUE, SPENT };

/* One array of an input file, inside the mapped file. */
struct array {
	const void *at;
	size_t count;
};

struct workload {
	const int64_t *op_begin, *dep_begin, *op_start, *op_length, *op_bytes, *size;
	const int32_t *op_kind, *op_file, *cores, *type, *dep, *produced;
	const double *op_seconds; /* duration of computing; of a read: computing that overlaps it */
	const double *busy;	  /* per task: share of its computing that uses a processor */
	int32_t tasks, files, types;
	int64_t ops, deps;
};

/* Settings of one run, in the order of the file (same order in analyzer/predict/simulator.py). */
enum setting {
	SET_SEED,
	SET_SCHEDULER,
	SET_STEAL,
	SET_LAW,
	SET_CHUNK,
	SET_WIDTH,
	SET_COPIES,
	SET_WINDOW,
	SET_META_SERVERS,
	SET_OPEN,
	SET_CREATE,
	SET_CLOSE,
	SET_LOOKUP,
	SET_LATENCY,
	SET_SMALL,
	SET_REQUEST,
	SET_STREAM,
	SET_CLIENT,
	SET_CLIENT_CACHE,
	SET_WARM,
	SET_SITE_LATENCY,
	SET_DETAIL,
	SET_TASK,
	SET_READ_WAIT,
	SET_WRITE_WAIT,
	SET_SPREAD,
	SET_AHEAD,
	SET_CALL,
	SET_FIRST,
	SET_SHARED,
	SET_ONE_COPY,
	SET_BUSY,
	SET_FILE_CPU,
	SET_CLIENT_CPU,
	SET_SERVER_CPU,
	SET_LINK_CPU,
	SET_POOL, /* number of servers (the first ones) used by the store; others hold staged files */
	SET_DISPATCH,
	SET_CACHE_WRITES,
	SET_FILL, /* use the first idle node instead of a random one */
	SETTINGS
};
enum host_setting {
	HOST_CORES,
	HOST_SPEED,
	HOST_OUT,
	HOST_IN,
	HOST_READ,
	HOST_WRITE,
	HOST_LOCAL,
	HOST_CACHE,
	HOST_DIRTY,
	HOST_SITE,
	HOST_MACHINE,
	HOST_SETTINGS
};

struct scenario {
	const double *set;			     /* SETTINGS */
	const double *host;			     /* HOST_SETTINGS per host */
	const double *site;			     /* rates out and in per site */
	const double *processors;		     /* per machine; 0: no limit */
	const int32_t *server;			     /* host of each server */
	const int32_t *law, *copies, *target, *plan; /* per file; plan per task. NULL: default */
	const int64_t *chunk;			     /* per file */
	int32_t hosts, servers, sites, groups, machines;
};

/* input.c: maps files and checks every count, index and number. 0, or a message and -1. */
struct file {
	const char *data;
	size_t size, at;
};
int file_open(struct file *f, const char *path);
void file_close(struct file *f);
int workload_read(struct workload *w, struct file *f);
/* 1: a scenario was read; 0: end of the file; -1: the file is damaged. */
int scenario_read(struct scenario *s, const struct workload *w, struct file *f);
int complain(const char *what, const char *name);

/* heap.c: the next event of every slot. */
struct heap {
	double *key;
	int32_t *slot, *at; /* slot at each place, place of each slot */
	int32_t count;
};
void heap_init(struct heap *h, int32_t slots);
void heap_free(struct heap *h);
void heap_set(struct heap *h, int32_t slot, double key);
void heap_drop(struct heap *h, int32_t slot);

/* fluid.c: transfers that share resources. A slot has at most one transfer at a time. */
enum resource_kind { R_OUT, R_IN, R_DISK, R_LOCAL, R_CLIENT, HOST_KINDS };
enum pool_kind { POOL_OUT, POOL_IN, POOL_DISK, POOL_SHARED, POOL_KINDS };
struct leg {
	int32_t resource, place; /* place: index in the list of the resource */
	double share;
};
struct flow {
	double bytes, left, rate, next, since; /* next: rate that is being computed */
	int32_t legs, limit, old_limit;	       /* limit: resource that limits the rate, or NONE */
	bool fixed, member;
	struct leg leg[MAX_LEGS];
};
enum state { OUTSIDE, BORDER, INSIDE }; /* of the set of resources that is recomputed */
struct resource {
	double capacity, used, left, shares;
	int32_t *list; /* transfers that use it: slot << LEG_BITS | index of the leg */
	int32_t count, room, limits; /* limits: number of transfers whose rate it limits */
	int32_t open;		     /* number of members without a new rate */
	enum state state;
};
struct level {
	double rate;
	int32_t resource;
};
struct fluid {
	struct resource *res;
	struct flow *flow;
	int32_t *inside, *border, *member;
	struct level *level; /* heap of resources by the rate that they offer a transfer */
	int32_t resources, slots, n_inside, n_border, n_member, n_level;
	double stream, tolerance; /* stream: maximum rate of one transfer; 0: no limit */
};
void fluid_init(struct fluid *f, int32_t resources, int32_t slots);
void fluid_free(struct fluid *f);
/* Add a resource to a transfer that has not begun; resources without a limit are skipped. */
void flow_use(struct fluid *f, int32_t slot, int32_t resource, double share);
/* False: no resource limits the transfer, so it takes no time. */
bool flow_begin(struct fluid *f, int32_t slot, double bytes, double now);
void flow_end(struct fluid *f, int32_t slot);
/* Recompute the transfers limited by a resource, or one transfer, in the next share_out(). */
void take_in(struct fluid *f, int32_t resource);
void add_member(struct fluid *f, int32_t slot);

/* share.c: rates of transfers. */
/* Whether anything has changed since the last share_out(). */
bool fluid_changed(const struct fluid *f);
/* Compute new rates of all transfers that changes since the last call may affect: they are
 * member[0 .. n_member) with the new rate in `next`. fluid_done() makes these the current rates. */
void share_out(struct fluid *f);
void fluid_done(struct fluid *f);

struct file_state {
	int64_t base; /* server of the first chunk, or start value of the law */
	int64_t chunk;
	double warm, stamp; /* bytes in the server's memory; its counter when they arrived */
	int32_t law, copies;
	bool placed;
};

struct slot {
	int32_t task, node;
	int64_t op;
	int32_t step;	     /* within the operation */
	int32_t leader;	     /* slot on the node whose read of the same file it shares, or NONE */
	int32_t followers;   /* number of slots that share its read */
	double sent;	     /* bytes of the operation whose transfers have begun */
	enum spent waits;    /* kind of time that its timer measures */
	bool moves;	     /* a transfer is in progress */
	bool works;	     /* the transfer is processor work, not bytes */
	double begun, until; /* until: end of an additional wait after the transfer */
	double op_begun;     /* start of its read or write */
	double overlap;	     /* seconds of computing done during reads */
};

struct task_state {
	double ready, start, end, spent[SPENT];
	int32_t missing, node, cause; /* cause: the dependency that ended last */
};

struct host_state {
	double cached, dirty, dirty_at, busy;	   /* busy: core seconds of computing */
	double in, out, disk, client_cached;	   /* bytes */
	double net_since, net, store_since, store; /* seconds in use */
	int32_t free, n_net, n_store;
};

struct sim {
	const struct workload *w;
	const struct scenario *s;
	struct fluid fluid;
	struct heap heap;
	struct file_state *file;
	struct task_state *task;
	struct slot *slot;
	struct host_state *host;
	double *meta_free, *server_free, *score; /* by service, by server, by host */
	int32_t *group, *server_on;		 /* server of a group, of a host; NONE */
	int32_t *servers_at, *servers_in;	 /* number of servers by site, by machine */
	int32_t *first_slot, *free_slot, *running;
	struct queues *queues;
	struct seen *seen;
	double now, network, crossed, pool_out, pool_in; /* bytes; crossed: between sites */
	double dispatched;				 /* time at which the scheduler is idle */
	int64_t meta_ops, rotate;
	int32_t done, pools, site_base, slots, machine_base, lane_base;
	double unit; /* bytes per second whose transfer uses one whole processor */
	uint64_t random;
};

static inline double set(const struct sim *m, enum setting which)
{
	return m->s->set[which];
}
static inline double of_host(const struct sim *m, int32_t host, enum host_setting which)
{
	return m->s->host[(size_t)host * HOST_SETTINGS + which];
}
static inline int32_t site_of(const struct sim *m, int32_t host)
{
	return (int32_t)of_host(m, host, HOST_SITE);
}
uint64_t mix(uint64_t x);
int32_t draw(struct sim *m, int32_t below);

/* place.c: location of the bytes of a file. */
void place_init(struct sim *m);
void place_file(struct sim *m, int32_t file, int32_t node);
/* The server of a copy of a chunk. */
int32_t server_of(const struct sim *m, int32_t file, int64_t chunk, int32_t copy);
/* Whether all chunks of a file have the same servers, so that one represents all. */
bool in_one_place(const struct sim *m, int32_t file);
/* Number of chunks after which the sequence of servers repeats; 0: never. */
int64_t period(const struct sim *m, int32_t file);
/* The copy of a chunk that a node reads: its own, else a random one; or always the first. */
int32_t copy_for(const struct sim *m, int32_t file, int64_t chunk, int32_t node);

/* transfer.c: the transfers of one operation. */
struct span {
	int32_t file, node;
	int64_t start, end; /* range of the file */
	double bytes;
	bool writes;
};
/* Begin the transfer; false: it takes no time. */
bool transfer_begin(struct sim *m, int32_t slot, const struct span *s);
void transfer_end(struct sim *m, int32_t slot);
/* Additional wait of a call on a node because one of its links is full. */
double behind_others(const struct sim *m, int32_t node);
/* Send a few bytes as one request to a server (writes: to each copy); return its duration. */
double small_request(struct sim *m, const struct span *s);

/* processors.c: processors of a machine that several hosts share. */
void processors_init(struct sim *m);
/* Number of lanes that the slots need. */
int32_t lanes_for(const struct sim *m);
/* Let a transfer use `seconds` of a processor per byte, on a host's machine or on a machine. */
void processors_use(struct sim *m, int32_t slot, int32_t host, double seconds);
void machine_use(struct sim *m, int32_t slot, int32_t machine, double seconds);
/* Begin work of `seconds` on so many processors of the slot's machine; it takes longer if others
 * use them too. False: nothing limits it there, or there is nothing to do. */
bool work_begin(struct sim *m, int32_t slot, enum spent what, double seconds, double processors);

/* cache.c: contents of the memory of servers and clients. */
bool server_has(struct sim *m, const struct span *s);
void server_keeps(struct sim *m, const struct span *s);
bool buffered(struct sim *m, int32_t host, double bytes);
bool client_has(struct sim *m, const struct span *s);

/* join.c: readers of one file on one node. Return the bytes that this slot must fetch itself. */
double join_read(struct sim *m, int32_t slot, const struct span *s);
/* Wait for the slot whose read is shared; false: that read is complete. */
bool join_wait(struct sim *m, int32_t slot);
/* End of a read: wake the slots that share it. */
void join_end(struct sim *m, int32_t slot);

/* operation.c: continue a slot's operations until one takes time; false: the task is done. */
bool go_on(struct sim *m, int32_t slot);
void wait_for(struct sim *m, int32_t slot, enum spent what, double seconds);

/* seen.c: hash table of (node, file) pairs seen; a new entry is all zero. */
struct entry {
	uint64_t key;
	double bytes, stamp;
	int32_t reader; /* slot that reads it, plus 1 */
};
struct seen *seen_new(void);
void seen_free(struct seen *s);
struct entry *seen_at(struct seen *s, uint64_t key);

/* schedule.c: assignment of ready tasks to nodes. */
struct queues *queues_new(const struct sim *m);
void queues_free(struct queues *q);
void make_ready(struct sim *m, int32_t task);
void dispatch(struct sim *m);
/* Update the list of idle nodes after a change of a node's free cores. */
void node_changed(struct sim *m, int32_t node);
int32_t cores_of(const struct sim *m, int32_t task);

/* run.c */
_Noreturn void no_memory(void);
void *zeroed(size_t count, size_t size);
void sim_init(struct sim *m, const struct workload *w, const struct scenario *s);
void sim_run(struct sim *m);
void sim_free(struct sim *m);
void start_task(struct sim *m, int32_t task, int32_t node);

/* output.c: the answer to one scenario on standard output. */
int answer(const struct sim *m);

#endif
