// SPDX-License-Identifier: Apache-2.0
/*
 * Process epochs: begun at the program's start, or at the first call of a child by fork; ended by
 * exec or exit. A child of vfork has its own record in memory that its parent gives back.
 */
#include <linux/fcntl.h>
#include "../hook/core.h"
#include "follow.h"

#define MAX_PATH 4096
#define VFORKS 32
#define FOLLOW "TRACEHINT_FOLLOW"

/* Zeroed in a child by fork. */
static struct own {
	struct rec rec;
	struct rec *vforked[VFORKS];
} * own;

/* Kept by a child by fork: who its parent was. */
static struct {
	unsigned int epoch, cwd, exe, root, stopped, follow;
} image;

/* `text`: room of MAX_PATH bytes. */
static unsigned int cwd_text(struct rec *rec, char *text)
{
	long n = th_sys(__NR_getcwd, text, MAX_PATH);

	return n > 1 && text[0] == '/' ? text_put(rec, rec->root, text, (unsigned int)n - 1) : 0;
}

/* A new epoch with `room` bytes for texts behind its record. */
static struct th_process_page *epoch_new(unsigned int room)
{
	unsigned int epoch = __atomic_add_fetch(&arena->epochs, 1, __ATOMIC_SEQ_CST);
	unsigned int size =
		(unsigned int)(sizeof(struct th_process_page) + room + TH_ARENA_PAGE - 1) &
		~(unsigned int)(TH_ARENA_PAGE - 1);
	struct th_chunk *chunk = chunk_new(TH_ALIVE, size, epoch);
	struct th_process_page *page = (struct th_process_page *)chunk;

	if (!page)
		return NULL;
	chunk->used = sizeof(*page);
	page->proc.kind = TH_ALIVE;
	page->proc.state = TH_LIVE;
	page->proc.epoch = epoch;
	page->proc.start_ns = now_ticks();
	page->proc.uid = (unsigned int)th_sys(__NR_getuid);
	return page;
}

/* Texts of the process go into the rest of its own chunk first. */
static bool epoch_begin(struct rec *rec, unsigned int room)
{
	struct th_process_page *page = epoch_new(room);

	if (!page) {
		rec->failed = 1;
		return false;
	}
	int pid = th_pid();

	page->proc.pid = page->proc.tgid = (unsigned int)pid;
	page->proc.ppid = (unsigned int)th_sys(__NR_getppid);
	clock_sample(&page->began);
	rec->epoch = page->proc.epoch;
	rec->chunks[TH_PATH] = &page->head;
	rec->page = page;
	return true;
}

static void child_begin(struct rec *rec, unsigned int parent, unsigned int slots)
{
	size_t bytes = slots * sizeof(struct slot) + TH_SHARES * sizeof(struct share);

	if (!rec->slots) {
		rec->slots = th_map(bytes);
		if (!rec->slots) {
			rec->failed = 1;
			return;
		}
		th_leave(rec->slots, bytes);
		rec->slot_count = slots;
		rec->shares = (struct share *)(rec->slots + slots);
	}
	if (!epoch_begin(rec, 0))
		return;
	rec->page->proc.parent = parent;
	rec->page->proc.cwd = rec->cwd = image.cwd;
	rec->page->proc.exe = image.exe;
	rec->root = image.root;
}

/* A filter may forbid the calls that are made here, in the children too. */
void process_stopped(struct rec *rec)
{
	lose(rec, TH_LOST_CREDENTIALS, 1);
	rec->failed = 1;
	image.stopped = 1;
}

static struct rec *vforked_here(void)
{
	int pid = th_pid();
	struct rec **free = NULL;

	for (unsigned int i = 0; i < VFORKS; i++) {
		struct rec *rec = own->vforked[i];

		if (rec && rec->pid == pid)
			return rec->failed ? NULL : rec;
		if (!rec && !free)
			free = &own->vforked[i];
	}
	struct rec *rec = free ? th_map(sizeof(*rec)) : NULL, *none = NULL;

	if (!rec)
		return NULL;
	rec->pid = pid;
	child_begin(rec, own->rec.epoch, TH_VFORK_SLOTS);
	if (!__atomic_compare_exchange_n(free, &none, rec, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		rec->failed = 1; /* another child was faster: this one's calls are not seen */
	return rec->failed ? NULL : rec;
}

/* The parent is back: its child by vfork has a memory of its own, or is gone. */
static void vforked_done(int pid)
{
	for (unsigned int i = 0; i < VFORKS; i++) {
		struct rec *rec = own->vforked[i];

		if (!rec || rec->pid != pid)
			continue;
		own->vforked[i] = NULL;
		th_sys(__NR_munmap, rec, sizeof(*rec));
	}
}

bool rec_begun(void)
{
	int pid = th_pid();

	if (!th_vforked())
		return own->rec.page;
	for (unsigned int i = 0; i < VFORKS; i++)
		if (own->vforked[i] && own->vforked[i]->pid == pid)
			return true;
	return false;
}

struct rec *rec_here(void)
{
	if (image.stopped)
		return NULL;
	if (th_vforked())
		return vforked_here();
	struct rec *rec = &own->rec;

	if (!rec->page && !rec->failed) {
		rec->slots = (struct slot *)(own + 1);
		rec->shares = (struct share *)(rec->slots + TH_SLOTS);
		rec->slot_count = TH_SLOTS;
		child_begin(rec, image.epoch, TH_SLOTS);
		image.epoch = rec->epoch;
	}
	return rec->failed ? NULL : rec;
}

/* Variables that name a task; nothing else of the environment is recorded. */
static bool is_marker(const char *entry)
{
	static const char *const names[] = {
		"TRACEHINT_TASK=",	"SLURM_JOB_ID=",	 "SLURM_ARRAY_JOB_ID=",
		"SLURM_ARRAY_TASK_ID=", "SLURM_STEP_ID=",	 "SLURM_PROCID=",
		"PBS_JOBID=",		"PBS_ARRAY_INDEX=",	 "LSB_JOBID=",
		"LSB_JOBINDEX=",	"OMPI_COMM_WORLD_RANK=", "PMI_RANK=",
		"PMIX_RANK=",		"PARALLEL_SEQ=",	 "MAKELEVEL=",
	};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (th_starts(entry, names[i]))
			return true;
	return false;
}

static unsigned int copy_texts(char *to, unsigned int most, char *const *texts, bool markers,
			       bool *cut)
{
	unsigned int at = 0;

	for (; texts && *texts; texts++) {
		unsigned int n = (unsigned int)th_len(*texts) + 1;

		if (markers && !is_marker(*texts))
			continue;
		if (at + n > most) {
			*cut = true;
			n = most - at;
		}
		if (to)
			th_copy(to + at, *texts, n);
		at += n;
		if (at == most)
			break;
	}
	return at;
}

/* Arguments and markers, behind each other. */
static void put_arguments(struct rec *rec, char *const *argv, char *const *envp)
{
	bool cut = false;
	unsigned int args = copy_texts(NULL, TH_MAX_ARGV, argv, false, &cut);
	unsigned int env = copy_texts(NULL, TH_MAX_ARGV, envp, true, &cut);
	unsigned int size = (args + env + 8 + 7) & ~7U;
	char *at = record_new(rec, TH_PATH, size);

	if (cut || !at)
		lose(rec, TH_LOST_ARGV_CUT, 1);
	if (!at)
		return;
	copy_texts(at, args, argv, false, &cut);
	copy_texts(at + args, env, envp, true, &cut);
	struct th_spool_exec *exec = &rec->page->exec;

	exec->argv_off = arena_offset(at);
	exec->argv_len = args;
	exec->env_off = exec->argv_off + args;
	exec->env_len = env;
	exec->epoch = rec->page->proc.epoch;
}

static unsigned int exe_text(struct rec *rec, char *text)
{
	long n = th_sys(__NR_readlink, "/proc/self/exe", text, MAX_PATH);

	return n > 0 ? text_put(rec, 0, text, (unsigned int)n) : 0;
}

bool process_start(const struct th_program *program)
{
	size_t bytes =
		sizeof(*own) + TH_SLOTS * sizeof(struct slot) + TH_SHARES * sizeof(struct share);
	bool cut = false;
	char text[MAX_PATH]; /* the stack is that of the program, which has not begun */

	own = th_map_wiped(bytes);
	if (!own)
		return false;
	struct rec *rec = &own->rec;

	rec->slots = (struct slot *)(own + 1);
	rec->slot_count = TH_SLOTS;
	rec->shares = (struct share *)(rec->slots + TH_SLOTS);
	if (!epoch_begin(rec, copy_texts(NULL, TH_MAX_ARGV, program->argv, false, &cut)))
		return false;
	rec->page->proc.flags = TH_PROC_EXECED;
	rec->page->proc.exe = image.exe = exe_text(rec, text);
	rec->page->proc.cwd = rec->cwd = image.cwd = cwd_text(rec, text);
	put_arguments(rec, program->argv, program->envp);
	image.epoch = rec->epoch;
	libraries_put(rec);
	image.follow = th_variable(program->envp, FOLLOW) != NULL;
	if (image.follow)
		th_carry(FOLLOW, "1");
	return true;
}

void process_moved(struct rec *rec)
{
	char *text = th_map(MAX_PATH);

	rec->cwd = text ? cwd_text(rec, text) : 0;
	if (text)
		th_sys(__NR_munmap, text, MAX_PATH);
	if (!th_vforked())
		image.cwd = rec->cwd;
}

/* chroot: absolute names begin there from now on. */
void process_rooted(struct rec *rec, unsigned int root)
{
	rec->root = root;
	if (!th_vforked())
		image.root = root;
	process_moved(rec);
}

static void event(struct rec *rec, enum th_event_kind kind, int pid, int status,
		  unsigned long long t)
{
	struct th_event *out = record_new(rec, TH_EVENT, sizeof(*out));

	if (!out) {
		lose(rec, TH_LOST_LIFECYCLE, 1);
		return;
	}
	out->epoch = rec->epoch;
	out->pid = (unsigned int)pid;
	out->status = status;
	out->t = t;
	out->kind = kind;
}

void process_waited(struct rec *rec, int pid, int status)
{
	event(rec, TH_EVENT_WAIT, pid, status, now_ticks());
}

/* From now on a child may move the positions of these descriptors. */
void process_forking(const struct th_call *call, unsigned long flags)
{
	struct rec *rec = rec_here();

	(void)call;
	if (!rec || (flags & TH_CLONE_THREAD))
		return;
	rec->forks++;
	rec->fork_ticks = now_ticks();
}

void process_forked(long pid, unsigned long flags)
{
	if ((flags & TH_CLONE_VFORK) && pid > 0)
		vforked_done((int)pid);
	struct rec *rec = (flags & TH_CLONE_THREAD) || pid <= 0 ? NULL : rec_here();

	if (rec)
		event(rec, TH_EVENT_FORK, (int)pid, 0, rec->fork_ticks);
}

/* A process below a followed program. */
struct th_process_page *process_followed(int tgid, int ppid, unsigned int parent)
{
	struct th_process_page *page = epoch_new(0);

	if (!page)
		return NULL;
	page->proc.pid = page->proc.tgid = (unsigned int)tgid;
	page->proc.ppid = (unsigned int)ppid;
	page->proc.parent = parent;
	clock_sample(&page->began);
	return page;
}

/* The program that cannot be entered: what is known of it is written here. */
static void successor(struct rec *rec, const struct th_call *call, enum th_class class)
{
	bool at = call->nr == __NR_execveat;
	char *const *argv = (char *const *)call->arg[at ? 2 : 1];
	char *const *envp = (char *const *)call->arg[at ? 3 : 2];
	bool cut = false;
	struct th_process_page *page =
		epoch_new(copy_texts(NULL, TH_MAX_ARGV, argv, false, &cut) + MAX_PATH);

	if (!page)
		return;
	struct rec next = {
		.page = page, .epoch = page->proc.epoch, .cwd = rec->cwd, .root = rec->root};

	next.chunks[TH_PATH] = &page->head;
	page->proc.pid = page->proc.tgid = rec->page->proc.pid;
	page->proc.ppid = rec->page->proc.ppid;
	page->proc.flags = TH_PROC_EXECED;
	page->proc.cwd = rec->cwd;
	page->proc.exe =
		path_at(&next, at ? call->arg[0] : TH_AT_FDCWD, (const char *)call->arg[at]);
	page->unentered = class;
	put_arguments(&next, argv, envp);
	rec->page->proc.hashed = page->proc.epoch; /* void where the exec fails */
	if (image.follow && (class == TH_CLASS_STATIC || class == TH_CLASS_GO))
		follow_start(page);
}

void process_executing(const struct th_call *call, enum th_class class)
{
	/* of a child that does nothing else before, its parent and the program tell all */
	bool silent = class == TH_CLASS_DYNAMIC && !rec_begun();
	struct rec *rec = silent || class == TH_CLASS_UNREADABLE ? NULL : rec_here();

	if (!rec)
		return;
	slots_settle(rec);
	if (class != TH_CLASS_DYNAMIC)
		successor(rec, call, class);
	rec->page->proc.end_ns = now_ticks();
	rec->page->proc.kind = TH_EXEC;
}

void process_not_executed(const struct th_call *call)
{
	struct rec *rec = rec_begun() ? rec_here() : NULL;

	(void)call;
	if (!rec || rec->page->proc.kind != TH_EXEC)
		return;
	rec->page->proc.kind = TH_ALIVE;
	rec->page->proc.end_ns = 0;
	rec->page->proc.hashed = 0;
}

/* A child that did nothing writes nothing: its parent saw it begin and end. */
void process_exits(int code)
{
	struct rec *rec = rec_begun() ? rec_here() : NULL;

	if (!rec)
		return;
	slots_settle(rec);
	rec->page->proc.exit_status = (code & 0xff) << 8;
	rec->page->proc.end_ns = now_ticks();
	rec->page->proc.kind = TH_EXIT;
}
