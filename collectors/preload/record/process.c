/*
 * Process epochs: they begin at the start of a program, or at the first call of a child by fork,
 * and end by exec or exit. A child of vfork has its own record, in memory that its parent unmaps.
 */
#include <linux/fcntl.h>
#include "process.h"

#define VFORKS 256
#define TABLES (TH_SHARES * sizeof(struct share) + TH_MAPS * sizeof(struct mapping))
#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)

/* A mark in the file, by which collector.py detects a library of another version. */
__attribute__((used)) static const char written_as[] =
	"tracehint arena " TEXT_OF(TH_ARENA_VERSION) ";";

/* Zeroed in a child by fork. */
static struct own {
	struct rec rec;
	/*
	 * Only the child and the thread of its parent may access `rec`: other threads may be
	 * releasing theirs.
	 */
	struct vforked {
		int pid; /* 0: free */
		struct rec *rec;
	} vforked[VFORKS];
} * own;

struct rec *own_rec;
struct image image;

/* Return the text of the working directory. `text`: buffer of TH_PATH_ROOM bytes. */
static unsigned int cwd_text(struct rec *rec, char *text)
{
	long n = th_sys(__NR_getcwd, text, TH_PATH_ROOM);

	return n > 1 && text[0] == '/' ? text_put(rec, rec->root, text, (unsigned int)n - 1) : 0;
}

/* Create an epoch with `room` bytes for texts after its record. */
struct th_process_page *epoch_new(unsigned int room)
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

/* Return the number in a link's target, as in `pid:[4026531836]`. 0: no /proc. */
unsigned int space_of(const char *link)
{
	char text[32];
	long n = th_sys(__NR_readlink, link, text, sizeof(text));
	unsigned int number = 0;

	for (long i = 0; i < n; i++)
		if (text[i] >= '0' && text[i] <= '9')
			number = number * 10 + (unsigned int)(text[i] - '0');
	return number;
}

/* Return the PID namespace: a PID means another process in another namespace. */
static unsigned int space_now(void)
{
	return space_of("/proc/self/ns/pid");
}

/* Begin an epoch. The first texts of the process are stored in the rest of its own chunk. */
static bool epoch_begin(struct rec *rec, unsigned int room, unsigned int space)
{
	struct th_process_page *page = epoch_new(room);

	if (!page) {
		rec->failed = 1;
		return false;
	}
	int pid = th_pid();

	page->proc.pid = page->proc.tgid = (unsigned int)pid;
	page->proc.ppid = (unsigned int)th_sys(__NR_getppid);
	page->space = space;
	clock_sample(&page->began);
	rec->epoch = page->proc.epoch;
	rec->chunks[TH_PATH] = &page->head;
	rec->page = page;
	return true;
}

/* Set the tables; those that few processes use are last. */
static void set_tables(struct rec *rec, void *at, unsigned int slots)
{
	rec->slots = at;
	rec->slot_count = slots;
	rec->shares = (struct share *)(rec->slots + slots);
	rec->maps = (struct mapping *)(rec->shares + TH_SHARES);
}

static void child_begin(struct rec *rec, unsigned int parent, unsigned int slots)
{
	size_t bytes = slots * sizeof(struct slot) + TABLES;

	if (!rec->slots) {
		void *tables = th_map(bytes);

		if (!tables) {
			rec->failed = 1;
			return;
		}
		th_leave(tables, bytes);
		set_tables(rec, tables, slots);
	}
	unsigned int space = image.other_space ? space_now() : image.space;

	if (!th_vforked()) {
		image.space = space;
		image.other_space = 0;
	}
	if (!epoch_begin(rec, 0, space))
		return;
	rec->page->proc.parent = parent;
	rec->page->proc.cwd = rec->cwd = image.cwd;
	rec->page->proc.exe = image.exe;
	rec->root = image.root;
	rec->page->mounts = image.mounts;
	rec->foreign = image.foreign;
}

/* Note whether programs can open the recording, after a change of user. */
void process_foreign(struct rec *rec)
{
	rec->foreign = !arena_reachable();
	if (!th_vforked())
		image.foreign = rec->foreign;
}

/* Note that some calls of the C library are not recorded. */
void process_incomplete(void)
{
	struct rec *rec = rec_here();

	if (!rec)
		return;
	lose(rec, TH_LOST_UNKNOWN_CALL, 1);
	rec->page->proc.unknown_call = TH_UNKNOWN_LIBC;
}

/* Stop recording, in the children too: a filter may forbid the calls of the recorder. */
void process_stopped(struct rec *rec)
{
	lose(rec, TH_LOST_CREDENTIALS, 1);
	rec->failed = 1;
	image.stopped = 1;
}

static struct vforked *vforked_of(int pid)
{
	for (unsigned int i = 0; i < VFORKS; i++)
		if (__atomic_load_n(&own->vforked[i].pid, __ATOMIC_SEQ_CST) == pid)
			return &own->vforked[i];
	return NULL;
}

static struct vforked *vforked_new(int pid)
{
	for (unsigned int i = 0; i < VFORKS; i++) {
		int none = 0;

		if (__atomic_compare_exchange_n(&own->vforked[i].pid, &none, pid, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return &own->vforked[i];
	}
	return NULL;
}

static struct rec *vforked_here(void)
{
	int pid = th_pid();
	struct vforked *mine = vforked_of(pid);

	if (!mine) {
		mine = vforked_new(pid);
		struct rec *rec = mine ? th_map(sizeof(*rec)) : NULL;

		if (rec) {
			child_begin(rec, own->rec.epoch, TH_VFORK_SLOTS);
			mine->rec = rec;
		}
	}
	if (!mine || !mine->rec) {
		__atomic_fetch_add(&arena->lost[TH_LOST_TABLE], 1, __ATOMIC_RELAXED);
		return NULL;
	}
	return mine->rec->failed ? NULL : mine->rec;
}

/* Release the record of a child by vfork, which has executed a program or ended by now. */
void vforked_done(int pid)
{
	struct vforked *its = vforked_of(pid);

	if (!its)
		return;
	if (its->rec)
		th_sys(__NR_munmap, its->rec, sizeof(*its->rec));
	its->rec = NULL;
	__atomic_store_n(&its->pid, 0, __ATOMIC_SEQ_CST);
}

bool rec_begun(void)
{
	if (!th_vforked())
		return own->rec.page;
	return vforked_of(th_pid()) != NULL;
}

struct rec *rec_here(void)
{
	if (image.stopped)
		return NULL;
	if (th_vforked())
		return vforked_here();
	struct rec *rec = &own->rec;

	if (!rec->page && !rec->failed) {
		set_tables(rec, own + 1, TH_SLOTS);
		child_begin(rec, image.epoch, TH_SLOTS);
		image.epoch = rec->epoch;
	}
	return rec->failed ? NULL : rec;
}

bool process_start(const struct th_program *program)
{
	char text[TH_PATH_ROOM]; /* the program has not begun to use its stack */

	own = th_map_wiped(sizeof(*own) + TH_SLOTS * sizeof(struct slot) + TABLES);
	if (!own) {
		__atomic_fetch_add(&arena->lost[TH_LOST_TABLE], 1, __ATOMIC_RELAXED);
		return false;
	}
	struct rec *rec = own_rec = &own->rec;

	set_tables(rec, own + 1, TH_SLOTS);
	image.space = space_now();
	if (!epoch_begin(rec, arguments_size(program->argv), image.space))
		return false;
	rec->page->proc.flags = TH_PROC_EXECED;
	rec->page->proc.cpu_from = cpu_used();
	rec->page->mounts = rec->root = image.mounts = image.root = mounts_text(rec);
	rec->page->proc.exe = image.exe = program_name(rec, program, text);
	rec->page->proc.cwd = rec->cwd = image.cwd = cwd_text(rec, text);
	put_arguments(rec, program->argv, program->envp);
	image.epoch = rec->epoch;
	libraries_put(rec);
	return true;
}

void process_moved(struct rec *rec)
{
	char *text = th_map(TH_PATH_ROOM);

	rec->cwd = text ? cwd_text(rec, text) : 0;
	if (text)
		th_sys(__NR_munmap, text, TH_PATH_ROOM);
	if (!th_vforked())
		image.cwd = rec->cwd;
}

/* Read the mount table again if this process, or a child that has ended, may have mounted. */
void process_remounted(struct rec *rec)
{
	if (!image.mounts || image.remounts == arena->remounts || rec->root != image.mounts ||
	    th_vforked())
		return;
	rec->root = image.mounts = image.root = mounts_text(rec);
	process_moved(rec);
}

/* chroot: absolute names are relative to `root` from now on. */
void process_rooted(struct rec *rec, unsigned int root)
{
	rec->root = root;
	if (!th_vforked())
		image.root = root;
	process_moved(rec);
}
