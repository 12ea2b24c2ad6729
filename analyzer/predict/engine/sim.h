// SPDX-License-Identifier: Apache-2.0
/* tracehint-sim: what its parts share. The model is described in docs/explanation/predict.md, the
 * form of the two files it reads in input.c. Seconds, bytes and bytes per second throughout; a rate
 * of 0 means: no limit.
 */
#ifndef TRACEHINT_SIM_H
#define TRACEHINT_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORMAT 10 /* of the input files; analyzer/predict/simulator.py has the same number */
#define LEG_BITS 7
#define MAX_LEGS (1 << LEG_BITS) /* resources of one transfer: six a server and a few more */
#define MAX_SERVERS 12		 /* servers of one transfer; more are the pool of all servers */
#define MAX_COPIES 64
#define MAX_SITE_LEGS 16 /* links of one transfer to all servers; MAX_LEGS has room for them */
#define NONE (-1)
#define ANYWHERE (-2) /* of a task in a plan: on an idle node */

enum op_kind { OP_READ, OP_WRITE, OP_COMPUTE, OP_KINDS };
enum law { LAW_ROTATE, LAW_RANDOM, LAW_LOCAL, LAW_ONE, LAW_STRIPE, LAW_NODE, LAW_GROUP, LAWS };
enum scheduler { BY_CHANCE, BY_BYTES, BY_PLAN, SCHEDULERS };
/* What an idle node takes of tasks that would rather run elsewhere. */
enum steal { STEAL_NOTHING, STEAL_ANY, STEAL_UNPLANNED };
/* What a task spends its time on. */
enum spent { IN_COMPUTE, IN_NETWORK, IN_DISK, IN_METADATA, IN_REQUESTS, IN_QUEUE, SPENT };

/* One array of an input file, inside the mapped file. */
struct array {
	const void *at;
	size_t count;
};

struct workload {
	const int64_t *op_begin, *dep_begin, *op_start, *op_length, *op_bytes, *size;
	const int32_t *op_kind, *op_file, *cores, *type, *dep, *produced;
	const double *op_seconds; /* of computing; of a read: of computing that overlaps it */
	const double *busy;	  /* share of its computing that takes a processor */
	int32_t tasks, files, types;
	int64_t ops, deps;
};

/* Numbers of one run, in the order of the file (analyzer/predict/simulator.py names them too). */
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
	SET_POOL, /* servers that the store fills itself, the first; others hold staged files */
	SET_DISPATCH,
	SET_CACHE_WRITES,
	SET_FILL, /* of idle nodes the first */
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
	const double *host;			     /* HOST_SETTINGS a host */
	const double *site;			     /* out and in of each site */
	const double *processors;		     /* of each machine; 0: no limit */
	const int32_t *server;			     /* host of each server */
	const int32_t *law, *copies, *target, *plan; /* per file; per task. NULL: the default */
	const int64_t *chunk;			     /* per file */
	int32_t hosts, servers, sites, groups, machines;
};

/* input.c. Both map a file and check every count, index and number; 0, or complain and -1. */
struct file {
	const char *data;
	size_t size, at;
};
int file_open(struct file *f, const char *path);
void file_close(struct file *f);
int workload_read(struct workload *w, struct file *f);
/* 1: a scenario; 0: the file ends here; -1: it is damaged. */
int scenario_read(struct scenario *s, const struct workload *w, struct file *f);
int complain(const char *what, const char *name);

/* heap.c: the next event of every slot. */
struct heap {
	double *key;
	int32_t *slot, *at; /* slots by place, places by slot */
	int32_t count;
};
void heap_init(struct heap *h, int32_t slots);
void heap_free(struct heap *h);
void heap_set(struct heap *h, int32_t slot, double key);
void heap_drop(struct heap *h, int32_t slot);

/* fluid.c: transfers that share resources. A slot has at most one at a time. */
enum resource_kind { R_OUT, R_IN, R_DISK, R_LOCAL, R_CLIENT, HOST_KINDS };
enum pool_kind { POOL_OUT, POOL_IN, POOL_DISK, POOL_SHARED, POOL_KINDS };
struct leg {
	int32_t resource, place; /* place: in the list of the resource */
	double share;
};
struct flow {
	double bytes, left, rate, next, since; /* next: the rate that is being computed */
	int32_t legs, limit, old_limit;	       /* limit: resource that decides the rate, or NONE */
	bool fixed, member;
	struct leg leg[MAX_LEGS];
};
enum state { OUTSIDE, BORDER, INSIDE }; /* of what is being computed */
struct resource {
	double capacity, used, left, shares;
	int32_t *list; /* transfers that use it: slot << LEG_BITS | number of the leg */
	int32_t count, room, limits; /* limits: transfers whose rate it decides */
	int32_t open;		     /* members that have no new rate yet */
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
	struct level *level; /* heap of resources by what they give a transfer */
	int32_t resources, slots, n_inside, n_border, n_member, n_level;
	double stream, tolerance; /* stream: most that one transfer gets; 0: no limit */
};
void fluid_init(struct fluid *f, int32_t resources, int32_t slots);
void fluid_free(struct fluid *f);
/* Add a use to a transfer that has not begun; a resource without limit is left out. */
void flow_use(struct fluid *f, int32_t slot, int32_t resource, double share);
/* False: nothing limits it, it takes no time. */
bool flow_begin(struct fluid *f, int32_t slot, double bytes, double now);
void flow_end(struct fluid *f, int32_t slot);
/* Compute a resource's, a transfer's part again with the next share_out(). */
void take_in(struct fluid *f, int32_t resource);
void add_member(struct fluid *f, int32_t slot);

/* share.c: their rates. */
/* Whether something changed since the last share_out(). */
bool fluid_changed(const struct fluid *f);
/* New rates for all transfers that the changes since the last call can have touched: they are
 * member[0 .. n_member) with their rate in `next`. fluid_done() makes them the rates. */
void share_out(struct fluid *f);
void fluid_done(struct fluid *f);

struct file_state {
	int64_t base; /* server or host of the first chunk, as the law says */
	int64_t chunk;
	double warm, stamp; /* bytes in its server's memory; the server's counter when they came */
	int32_t law, copies;
	bool placed;
};

struct slot {
	int32_t task, node;
	int64_t op;
	int32_t step;	     /* within the operation */
	int32_t leader;	     /* slot that reads the same file on its node, or NONE */
	int32_t followers;   /* slots whose leader it is */
	double sent;	     /* bytes of the operation whose transfers have begun */
	enum spent waits;    /* what its timer stands for */
	bool moves;	     /* a transfer is on its way */
	bool works;	     /* and it is work of a processor, no bytes */
	double begun, until; /* until: what it waits for besides is over */
	double op_begun;     /* when its read or write began */
	double overlap;	     /* seconds of computing that were done during reads */
};

struct task_state {
	double ready, start, end, spent[SPENT];
	int32_t missing, node, cause; /* cause: the task that it waited for last */
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
	int32_t *servers_at, *servers_in;	 /* by site, by machine */
	int32_t *first_slot, *free_slot, *running;
	struct queues *queues;
	struct seen *seen;
	double now, network, crossed, pool_out, pool_in; /* bytes; crossed: between sites */
	double dispatched;				 /* when the scheduler is free again */
	int64_t meta_ops, rotate;
	int32_t done, pools, site_base, slots, machine_base, lane_base;
	double unit; /* of a processor: as many bytes a second as moving costs one of */
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

/* place.c: where the bytes of a file lie. */
void place_init(struct sim *m);
void place_file(struct sim *m, int32_t file, int32_t node);
/* The server of a copy of a chunk. */
int32_t server_of(const struct sim *m, int32_t file, int64_t chunk, int32_t copy);
/* Whether all chunks of a file lie alike, so that one stands for all. */
bool in_one_place(const struct sim *m, int32_t file);
/* After so many chunks the servers come again; 0: never. */
int64_t period(const struct sim *m, int32_t file);
/* The copy of a chunk that a node reads: its own, else any by chance; or always the first. */
int32_t copy_for(const struct sim *m, int32_t file, int64_t chunk, int32_t node);

/* transfer.c: the transfers of one operation. */
struct span {
	int32_t file, node;
	int64_t start, end; /* of the file */
	double bytes;
	bool writes;
};
/* Begin it; false: it takes no time. */
bool transfer_begin(struct sim *m, int32_t slot, const struct span *s);
void transfer_end(struct sim *m, int32_t slot);
/* What a call waits on a node because one of its links is full. */
double behind_others(const struct sim *m, int32_t node);
/* A few bytes: a request to one server; the time that it takes. */
double small_request(struct sim *m, const struct span *s);

/* processors.c: those of a machine that several hosts share. */
void processors_init(struct sim *m);
/* Lanes that the slots need. */
int32_t lanes_for(const struct sim *m);
/* A transfer takes so many seconds of a processor for each of its bytes on a host, or a machine. */
void processors_use(struct sim *m, int32_t slot, int32_t host, double seconds);
void machine_use(struct sim *m, int32_t slot, int32_t machine, double seconds);
/* The slot's node works for so long on that many processors, longer where others do as well;
 * false: nothing limits it there, or there is nothing to do. */
bool work_begin(struct sim *m, int32_t slot, enum spent what, double seconds, double processors);

/* cache.c: what servers and clients hold in memory. */
bool server_has(struct sim *m, const struct span *s);
void server_keeps(struct sim *m, const struct span *s);
bool buffered(struct sim *m, int32_t host, double bytes);
bool client_has(struct sim *m, const struct span *s);

/* join.c: readers of one file on one node. The bytes of the span that this one has to fetch. */
double join_read(struct sim *m, int32_t slot, const struct span *s);
/* Wait for the slot that was joined; false: it has all by now. */
bool join_wait(struct sim *m, int32_t slot);
/* A read is over: those that joined it go on. */
void join_end(struct sim *m, int32_t slot);

/* operation.c: go on with a slot's operations until one takes time; false: the task is done. */
bool go_on(struct sim *m, int32_t slot);
void wait_for(struct sim *m, int32_t slot, enum spent what, double seconds);

/* seen.c: a table of what was seen, by key; a new entry is all zero. NULL: no memory. */
struct entry {
	uint64_t key;
	double bytes, stamp;
	int32_t reader; /* slot that reads it, + 1 */
};
struct seen *seen_new(void);
void seen_free(struct seen *s);
struct entry *seen_at(struct seen *s, uint64_t key);

/* schedule.c: which ready task starts where. */
struct queues *queues_new(const struct sim *m);
void queues_free(struct queues *q);
void make_ready(struct sim *m, int32_t task);
void dispatch(struct sim *m);
/* The number of free cores of a node has changed. */
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
