/* SPDX-License-Identifier: Apache-2.0 */
/* Interface between the parts of the recorder. */
#ifndef TRACEHINT_RECORD_H
#define TRACEHINT_RECORD_H

#include "../arena.h"
#include "../hook.h"

#define TH_SLOTS 65536	   /* descriptors that are recorded */
#define TH_VFORK_SLOTS 256 /* in a child of vfork */
#define TH_SHARES 2048	   /* threads' shares of episodes */

enum held { HELD_MAPPING = 1, HELD_CALL = 2 };
enum slot_kind { SLOT_NONE, SLOT_BUSY, SLOT_FILE, SLOT_PIPE, SLOT_DIR, SLOT_OTHER };

/* A descriptor of this process. */
struct slot {
	struct th_episode *ep;
	unsigned long owner;  /* the thread that counts in `ep` itself */
	long long pos;	      /* the file position, if no other process moves it */
	unsigned int path;    /* directories: for relative names */
	unsigned int forks;   /* value of rec->forks when it was opened */
	unsigned char kind;   /* enum slot_kind */
	unsigned char shared; /* others may move the position */
	unsigned char append;
	unsigned char writes;
	unsigned char held; /* other references to its episode: HELD_* */
};

struct share {
	struct th_episode *ep;
	unsigned long thread;
	unsigned long long open_id;
};

#define TH_MAPS 64
#define TH_SPARES 4
#define TH_TEXTS 16

/* A mapped file. */
struct mapping {
	unsigned long at, len;		/* len 0: free */
	unsigned long long start, size; /* offset in the file; its size when mapped */
	struct th_episode *ep;
	bool shared, written;
};

/* Recording state of this process; zeroed in a child by fork. */
struct rec {
	struct th_process_page *page; /* NULL: not begun */
	struct slot *slots;
	struct share *shares;
	unsigned int share_count;
	unsigned int slot_count, top; /* top: above the highest descriptor in use */
	unsigned int epoch, cwd;
	unsigned int root;    /* text: root of absolute names; 0: the recorder's */
	unsigned int foreign; /* programs that it executes may not open the recording */
	unsigned int failed;  /* nothing is recorded: no space in the arena, or a filter */
	unsigned int forks;
	struct th_chunk *chunks[TH_BRIEF + 1];
	struct th_episode *spares[TH_SPARES];  /* of closed files, for reuse */
	const struct th_text *texts[TH_TEXTS]; /* stored recently */
	unsigned int maps_lost;		       /* some mappings are not remembered */
	struct mapping *maps;		       /* TH_MAPS of them */
};

static inline unsigned long long now_ticks(void)
{
	unsigned int low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (unsigned long long)high << 32 | low;
}

/* Identifies a thread without a call, by the address of its control block. */
static inline unsigned long this_thread(void)
{
	unsigned long at;

	__asm__("mov %%fs:0, %0" : "=r"(at));
	return at;
}

/* clock.c */
unsigned long long cpu_used(void); /* nanoseconds, by all threads of this process */
void clock_sample(struct th_clock *clock);

/* arena.c */
extern struct th_arena *arena;
bool arena_open(const char *value);
void arena_missed(const char *value);
bool arena_reachable(void);
bool arena_out_of_reach(void);
struct th_chunk *chunk_new(unsigned int kind, unsigned int size, unsigned int epoch);
void *record_new(struct rec *rec, unsigned int kind, unsigned int size);
unsigned int text_put(struct rec *rec, unsigned int dir, const char *text, unsigned int len);
unsigned long long arena_offset(const void *at);
void lose(struct rec *rec, enum th_loss kind, unsigned int n);

/* process.c */
struct rec *rec_here(void); /* NULL: nothing can be recorded */
bool rec_begun(void);	    /* whether this process has a record already */
bool process_start(const struct th_program *program);
void process_moved(struct rec *rec); /* its working directory */
void process_remounted(struct rec *rec);
void process_rooted(struct rec *rec, unsigned int root);
void process_waited(struct rec *rec, int pid, int status);
void process_exits(int code);
void process_stopped(struct rec *rec);
void process_foreign(struct rec *rec);
void process_incomplete(void);
void process_forking(unsigned long flags, unsigned long long *began);
void process_forked(long pid, unsigned long flags, unsigned long long began);
void process_executing(const struct th_call *call, enum th_class class);
void process_not_executed(const struct th_call *call);

/* maps.c */
void map_mmap(struct rec *rec, const struct th_call *c);
void map_munmap(struct rec *rec, const struct th_call *c);
void map_mremap(struct rec *rec, const struct th_call *c);
void map_mprotect(struct rec *rec, const struct th_call *c);

/* aio.c, libraries.c */
void aio_submit(struct rec *rec, struct th_call *c);
void libraries_put(struct rec *rec);

/* names.c */
struct name_change {
	enum th_name_op op;
	long dir, new_dir;
	const char *path, *new_path; /* NULL: none */
	unsigned long long size;
};
void name_changed(struct rec *rec, const struct name_change *change);

/* facts.c: statx of what is open at `fd` */
struct statx;
long facts_of(long fd, unsigned int mask, struct statx *facts);
bool size_of(long fd, unsigned long long *size);

/* brief.c */
void episode_closed(struct rec *rec, struct th_episode *ep);
struct th_episode *episode_spare(struct rec *rec);

/* slots.c */
struct slot *slot_at(struct rec *rec, long fd);
struct slot *slot_use(struct rec *rec, long fd); /* begins an episode if there is none */
void slot_opened(struct rec *rec, long fd, unsigned int path, unsigned long flags, bool created);
void slot_closed(struct rec *rec, long fd);
void slot_settle(struct rec *rec, long fd); /* store the size before a close */
void slots_settle(struct rec *rec);
struct th_episode *episode_new(struct rec *rec, long fd, const struct statx *facts,
			       unsigned long flags, unsigned int state);
struct th_episode *episode_part(struct rec *rec, const struct th_episode *from);
struct th_episode *episode_of(struct rec *rec, struct slot *slot, long fd);
unsigned int path_of_fd(struct rec *rec, long fd);
unsigned int path_asked(struct rec *rec, long fd, bool deleted);
enum slot_kind slot_kind_of(long fd, const struct statx *facts, unsigned long flags);
bool path_is_own(const char *path);
unsigned int path_at(struct rec *rec, long dirfd, const char *path);

/* runs.c */
#define TH_OP(op, how, inexact) ((op) | (how) << 8 | (inexact) << 16)
void run_add(struct rec *rec, struct th_episode *ep, unsigned int op_how, unsigned long long start,
	     unsigned long long len);
void run_end(struct rec *rec, struct th_episode *ep);
void moved(struct rec *rec, long fd, unsigned int op_how, long long pos, unsigned long long len);
void touched(struct rec *rec, long fd, unsigned int op_how, unsigned long long start,
	     unsigned long long len);

#endif
