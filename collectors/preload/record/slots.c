// SPDX-License-Identifier: Apache-2.0
/*
 * Descriptors of this process and their open episodes. A descriptor that was not seen to be
 * opened (inherited, passed, made by dup) begins an episode when it is used first. Threads that
 * use a descriptor of another one have a share of its episode each, so nothing is locked.
 */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "record.h"

#define AT_EMPTY_PATH 0x1000
#define MAX_PATH 4096
#define SPINS 2000
#define MAX_DEVICES 32

/* File systems without data: proc, sysfs ... as in collectors/ebpf/rec/config.c. */
static const unsigned int no_data[] = {
	0x9fa0,	    0x62656572, 0x27e0eb,   0x63677270, 0x64626720, 0x74726163,
	0x73636673, 0xcafe4a11, 0x62656570, 0x1cd1,	0x6165676c, 0x19800202,
	0x42494e4d, 0xde5e81e4, 0xf97cff8c, 0x6e736673,
};

/* What was found out about devices without a disk: number, and whether it has data. */
static struct {
	unsigned int dev, has_data;
} devices[MAX_DEVICES];
static unsigned int device_count;

static bool look_at(long fd)
{
	long buffer[15]; /* struct statfs; the first is the type */

	if (th_failed(th_sys(__NR_fstatfs, fd, buffer)))
		return false;
	for (unsigned int i = 0; i < sizeof(no_data) / sizeof(*no_data); i++)
		if ((unsigned int)buffer[0] == no_data[i])
			return false;
	return true;
}

static bool has_data(long fd, const struct statx *facts, unsigned int dev)
{
	if (facts->stx_dev_major)
		return true;
	for (unsigned int i = 0; i < device_count; i++)
		if (devices[i].dev == dev)
			return devices[i].has_data;
	bool found = look_at(fd);
	unsigned int i = device_count;

	if (i < MAX_DEVICES) {
		devices[i].dev = dev;
		devices[i].has_data = found;
		__atomic_store_n(&device_count, i + 1, __ATOMIC_RELEASE);
	}
	return found;
}

static long ask(long fd, struct statx *facts)
{
	return th_sys(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, facts);
}

struct slot *slot_at(struct rec *rec, long fd)
{
	return (unsigned long)fd < rec->slot_count ? &rec->slots[fd] : NULL;
}

/* "/proc/self/fd/N" */
static void own_name(char *to, long fd)
{
	char digits[20];
	unsigned int n = 0;

	th_copy(to, "/proc/self/fd/", 14);
	to += 14;
	do
		digits[n++] = (char)('0' + fd % 10);
	while (fd /= 10);
	while (n)
		*to++ = digits[--n];
	*to = '\0';
}

/* The path of an open file as the kernel has it; 0: not known. */
unsigned int path_asked(struct rec *rec, long fd, bool deleted)
{
	static const char gone[] = " (deleted)";
	char name[48];
	unsigned int size = MAX_PATH;
	char *text = th_map(size);
	unsigned int id = 0;

	if (!text)
		return 0;
	own_name(name, fd);
	long n = th_sys(__NR_readlink, name, text, size);

	if (n > (long)sizeof(gone) && deleted &&
	    th_same(text + n - (sizeof(gone) - 1), gone, sizeof(gone) - 1))
		n -= sizeof(gone) - 1;
	if (n > 0 && text[0] == '/' && !th_starts(text, "/memfd:"))
		id = text_put(rec, 0, text, (unsigned int)n);
	th_sys(__NR_munmap, text, size);
	return id;
}

static unsigned int birth(const struct statx *facts)
{
	if (!(facts->stx_mask & STATX_BTIME) || !facts->stx_btime.tv_sec)
		return 0;
	unsigned long long ns = (unsigned long long)facts->stx_btime.tv_sec * 1000000000ULL +
				facts->stx_btime.tv_nsec;

	return (unsigned int)((ns * 0x9e3779b97f4a7c15ULL) >> 33) | 1;
}

enum slot_kind slot_kind_of(long fd, const struct statx *facts, unsigned long flags)
{
	unsigned int dev = facts->stx_dev_major << 20 | facts->stx_dev_minor;

	switch (facts->stx_mode & S_IFMT) {
	case S_IFIFO:
		return SLOT_PIPE;
	case S_IFDIR:
		return SLOT_DIR;
	case S_IFREG:
		return !(flags & O_PATH) && has_data(fd, facts, dev) ? SLOT_FILE : SLOT_OTHER;
	}
	return SLOT_OTHER;
}

struct th_episode *episode_new(struct rec *rec, long fd, const struct statx *facts,
			       unsigned long flags, unsigned int state)
{
	struct th_episode *ep = record_new(rec, TH_EPISODE, sizeof(*ep));

	if (!ep) {
		lose(rec, TH_LOST_TABLE, 1);
		return NULL;
	}
	unsigned int n = __atomic_fetch_add(&rec->page->proc.opens, 1, __ATOMIC_RELAXED);

	ep->open_id = (unsigned long long)rec->epoch << 32 | n;
	ep->epoch = rec->epoch;
	ep->fd = (int)fd;
	ep->ino = facts->stx_ino;
	ep->dev = facts->stx_dev_major << 20 | facts->stx_dev_minor;
	ep->generation = birth(facts);
	ep->mode = facts->stx_mode;
	ep->nlink = facts->stx_nlink;
	ep->flags = (unsigned int)flags;
	ep->size_open = ep->size_close = facts->stx_size;
	ep->open_ns = now_ticks();
	ep->next = ~0ULL;
	ep->state = TH_EP_LIVE | state;
	return ep;
}

/* Fill a slot for what is open at `fd`; its kind comes last, others may wait for it. */
static void slot_begin(struct rec *rec, struct slot *slot, long fd, unsigned int path,
		       unsigned long flags, unsigned int state)
{
	struct statx facts;
	enum slot_kind kind = SLOT_OTHER;
	struct th_episode *ep = NULL;

	if (!th_failed(ask(fd, &facts)))
		kind = slot_kind_of(fd, &facts, flags);
	if (!path && (kind == SLOT_FILE || kind == SLOT_DIR))
		path = path_asked(rec, fd, !facts.stx_nlink);
	if (kind == SLOT_FILE && (state & TH_EP_INHERITED) && !path)
		kind = SLOT_OTHER; /* memory that has a descriptor */
	if (kind == SLOT_FILE || kind == SLOT_PIPE)
		ep = episode_new(rec, fd, &facts, flags,
				 state | (kind == SLOT_PIPE ? TH_EP_PIPE : 0));
	if (ep) {
		ep->path = kind == SLOT_FILE ? path : 0;
		ep->kind = TH_EPISODE;
	} else if (kind == SLOT_FILE || kind == SLOT_PIPE) {
		kind = SLOT_OTHER;
	}
	slot->ep = ep;
	slot->owner = this_thread();
	slot->pos = state & TH_EP_INHERITED ? -1 : 0;
	slot->path = path;
	slot->forks = rec->forks;
	slot->shared = !!(state & TH_EP_INHERITED);
	slot->append = !!(flags & O_APPEND);
	slot->writes = !!(state & (TH_EP_CREATED | TH_EP_TRUNCATED));
	if (rec->top <= (unsigned int)fd)
		rec->top = (unsigned int)fd + 1;
	__atomic_store_n(&slot->kind, kind, __ATOMIC_RELEASE);
}

/* The slot of a descriptor; NULL where it is beyond the table. */
struct slot *slot_use(struct rec *rec, long fd)
{
	struct slot *slot = slot_at(rec, fd);
	unsigned char none = SLOT_NONE;

	if (!slot) {
		if (fd >= 0)
			lose(rec, TH_LOST_TABLE, 1);
		return NULL;
	}
	unsigned char kind = __atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE);

	if (kind > SLOT_BUSY)
		return slot;
	if (kind == SLOT_NONE && __atomic_compare_exchange_n(&slot->kind, &none, SLOT_BUSY, false,
							     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		long flags = th_sys(__NR_fcntl, fd, F_GETFL);

		slot_begin(rec, slot, fd, 0,
			   th_failed(flags) ? 0 : (unsigned long)flags & ~0100000UL,
			   TH_EP_INHERITED);
		return slot;
	}
	/* another thread is at it, or this one is and got a signal */
	for (unsigned int i = 0; i < SPINS; i++) {
		if (__atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE) > SLOT_BUSY)
			return slot;
		__asm__ volatile("pause");
	}
	lose(rec, TH_LOST_EXTENTS, 1);
	return NULL;
}

void slot_opened(struct rec *rec, long fd, unsigned int path, unsigned long flags, bool created)
{
	struct slot *slot = slot_at(rec, fd);
	unsigned int state = created ? TH_EP_CREATED : flags & O_TRUNC ? TH_EP_TRUNCATED : 0;

	if (!slot) {
		lose(rec, TH_LOST_TABLE, 1);
		return;
	}
	slot_closed(rec, fd); /* by a call that was not seen */
	slot_begin(rec, slot, fd, path, flags, state);
	if (slot->kind == SLOT_FILE && (state & TH_EP_TRUNCATED))
		run_add(rec, slot->ep, TH_OP(TH_TRUNCATE, TH_HOW_OPEN, 0), 0, 0);
}

void slot_closed(struct rec *rec, long fd)
{
	struct slot *slot = slot_at(rec, fd);

	if (!slot || slot->kind <= SLOT_BUSY)
		return;
	if (slot->ep)
		slot->ep->close_ns = now_ticks();
	slot->ep = NULL;
	__atomic_store_n(&slot->kind, SLOT_NONE, __ATOMIC_RELEASE);
}

void slot_settle(struct rec *rec, long fd)
{
	struct slot *slot = slot_at(rec, fd);
	struct statx facts;

	if (!slot || slot->kind != SLOT_FILE || !slot->writes || th_failed(ask(fd, &facts)))
		return;
	slot->ep->size_close = facts.stx_size;
	slot->ep->nlink = facts.stx_nlink;
}

void slots_settle(struct rec *rec)
{
	for (unsigned int fd = 0; fd < rec->top; fd++)
		slot_settle(rec, fd);
}

static struct th_episode *share_new(struct rec *rec, const struct slot *slot)
{
	struct th_episode *ep = record_new(rec, TH_EPISODE, sizeof(*ep)), *from = slot->ep;

	if (!ep) {
		lose(rec, TH_LOST_TABLE, 1);
		return NULL;
	}
	ep->open_id = from->open_id;
	ep->epoch = from->epoch;
	ep->fd = from->fd;
	ep->ino = from->ino;
	ep->dev = from->dev;
	ep->generation = from->generation;
	ep->mode = from->mode;
	ep->nlink = from->nlink;
	ep->flags = from->flags;
	ep->path = from->path;
	ep->size_open = from->size_open;
	ep->open_ns = from->open_ns;
	ep->next = ~0ULL;
	/* a thread that lost its place to another one has two: told apart all the same */
	ep->tid = __atomic_add_fetch(&rec->share_count, 1, __ATOMIC_RELAXED);
	ep->state = (from->state & ~(TH_EP_CREATED | TH_EP_TRUNCATED)) | TH_EP_PARTIAL;
	ep->kind = TH_EPISODE;
	return ep;
}

/* The episode that this thread counts in. */
struct th_episode *episode_of(struct rec *rec, struct slot *slot, long fd)
{
	unsigned long thread = this_thread();
	struct th_episode *own = slot->ep;

	if (slot->owner == thread || !own)
		return own;
	slot->shared = 1;
	unsigned long hash = (thread >> 6 ^ (unsigned long)fd * 0x9e3779b1UL) % TH_SHARES;

	for (unsigned int i = 0; i < 16; i++) {
		struct share *share = &rec->shares[(hash + i) % TH_SHARES];

		if (share->thread == thread && share->open_id == own->open_id)
			return share->ep;
	}
	struct share *place = &rec->shares[hash];

	for (unsigned int i = 0; i < 16; i++)
		if (!rec->shares[(hash + i) % TH_SHARES].thread) {
			place = &rec->shares[(hash + i) % TH_SHARES];
			break;
		}
	struct th_episode *ep = share_new(rec, slot);

	if (!ep)
		return NULL;
	place->thread = 0;
	place->ep = ep;
	place->open_id = own->open_id;
	place->thread = thread;
	return ep;
}

unsigned int path_of_fd(struct rec *rec, long fd)
{
	struct slot *slot = slot_use(rec, fd);

	return slot ? slot->path : 0;
}

/* Whether a path says something about this process only: the kernel knows what it meant. */
bool path_is_own(const char *path)
{
	return th_starts(path, "/proc/") || th_starts(path, "/dev/fd/") ||
	       th_starts(path, "/dev/std");
}

/* The text of a path as a call gave it. */
unsigned int path_at(struct rec *rec, long dirfd, const char *path)
{
	size_t len = th_len(path);

	if (!len && (int)dirfd != TH_AT_FDCWD)
		return path_of_fd(rec, (int)dirfd);
	if (len >= MAX_PATH)
		len = MAX_PATH;
	if (*path == '/')
		return text_put(rec, rec->root, path, (unsigned int)len);
	unsigned int dir = (int)dirfd == TH_AT_FDCWD ? rec->cwd : path_of_fd(rec, (int)dirfd);

	return text_put(rec, dir, path, (unsigned int)len);
}
