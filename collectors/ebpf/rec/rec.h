/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of the loader's parts. Every function that can fail returns 0 or -errno. */
#ifndef TRACEHINT_REC_H
#define TRACEHINT_REC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include "../control.h"
#include "../spool.h"

#define REC_FAILED 125
#define REC_NOT_EXECUTABLE 126
#define REC_NOT_FOUND 127

struct options {
	const char *spool; /* existing directory */
	char **command;
	int pid;		  /* follow this process and its descendants; 0: none */
	const char *cgroup;	  /* follow the processes of this cgroup v2 directory */
	unsigned int duration_ms; /* of following; 0: no limit */
	int listen;		  /* a listening socket: follow processes that connect; -1: none */
	int lock;		  /* file that connecting processes lock, shared */
	int ready;		  /* one byte is written there when it records; -1: none */
	int environment;	  /* file with the command's environment; -1: use this program's */
	unsigned int idle_ms;	  /* end after this time without followed processes; 0: never */
	unsigned int ring;	  /* bytes, powers of two */
	unsigned int extents_ring;
	unsigned int slots;	/* processes followed at the same time */
	unsigned int linger_ms; /* how long to follow processes that outlive the command */
	bool check;		/* load, attach, end */
	bool version;		/* print the spool's version, end */
	bool no_direct;		/* as on kernels without bpf_rdonly_cast (tests) */
};

/* options.c */
extern const char options_usage[];
int options_parse(int argc, char **argv, struct options *o);
int options_follow(const struct options *o);

/* stamps.c */
void stamp_start(const struct options *o, pid_t command);
void stamp_end(const struct options *o, int status, unsigned int left, unsigned long long load_ns);

/* calls.c */
void calls_fill(struct th_config *cfg);

/* launch.c: the command, which waits until recording has begun */
struct child {
	pid_t pid;
	int pidfd;
	int go;	    /* write end: one byte lets it run */
	int failed; /* read end: errno of a failed exec */
};
int child_start(struct child *child, const struct options *o, unsigned long long cookie);
int child_announce(struct child *child);
int child_exec(struct child *child);
void child_abandon(struct child *child);
int signals_block(void);
void signals_restore(void);
int signals_fd(void);
void signal_forward(int fd, pid_t pid);

/* spool.c: files of records */
enum spool_file {
	SPOOL_EPISODES,
	SPOOL_EXTENTS,
	SPOOL_PROCESSES,
	SPOOL_EXECS,
	SPOOL_PATHS,
	SPOOL_NAMES,
	SPOOL_LOSSES,
	SPOOL_HEAP,
	SPOOL_FILES,
};
int spool_open(const char *dir);
bool spool_full(enum spool_file file, size_t size);
void spool_put(enum spool_file file, const void *record, size_t size);
uint64_t spool_text(const void *text, size_t len);
size_t spool_fetch(uint64_t off, char *out, size_t len);
void spool_flush(void);
void spool_close(void);
unsigned long long spool_lost(void);
int spool_write_json(const char *name, const char *text);

/* resolve.c: strings of calls that change names */
void resolve_path_added(const struct th_path *rec);
void resolve_name(const struct th_name *rec);

/* features.c */
void features_print_missing(FILE *out);

/* tracer.c: the BPF object and its maps */
int tracer_load(const struct options *options, unsigned long long cookie);
int tracer_attach(void);
void tracer_arm(void);
bool tracer_armed(void);
unsigned int tracer_epochs(void);
int tracer_want_pid(unsigned int pid);
void tracer_unwant_pid(unsigned int pid);
unsigned int tracer_next_wanted(unsigned int after);
int tracer_want_cgroup(int fd);
unsigned int tracer_live(void);
int tracer_epoll_fd(void);
int tracer_consume(void);
void tracer_finish(void);
unsigned long long tracer_misses(void);
void tracer_free(void);

/* The maps' memory, shared with the kernel, and descriptors of other maps. */
struct maps {
	struct th_state *state;
	struct th_process *procs;    /* by slot; slot 0 is not used */
	struct th_episode *episodes; /* TH_DIRECT_FDS per slot */
	unsigned int slots;
	int hashed_fd;
	int free_fd;
};
extern struct maps maps;

/* follow.c: processes that run already */
int follow_check(const struct options *o);
int follow_begin(const struct options *o, unsigned long long cookie);
void follow_until_end(const struct options *o, int signals);
bool follow_any_wanted(void);
bool follow_asked_to_stop(int signals);

/* proctree.c */
struct proc_row {
	int pid, ppid;
	bool ours; /* of the caller's user, or the caller is root */
};
int proctree_row(int pid, struct proc_row *row);
int proctree_want(int root);

/* node.c: processes that ask to be followed */
int node_check(const struct options *o);
void node_serve(const struct options *o, int signals);

/* collect.c: from rings and maps to the spool */
int collect_init(void);
int collect_event(void *ctx, void *data, size_t size);
int collect_extent(void *ctx, void *data, size_t size);
void collect_tick(unsigned long long now);
void collect_flush(void);
void collect_finish(void);
void collect_free(void);
unsigned int slots_used(void);
void episode_out(const struct th_episode *ep);

/* sweep.c */
void reserve_entries(void);
void sweep_hashed(bool snapshots);

/* execs.c */
bool exec_put(const struct th_exec *rec, size_t size);

/* privilege.c */
int privileges_drop(void);

unsigned long long clock_ns(int clock);

#endif
