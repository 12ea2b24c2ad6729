// SPDX-License-Identifier: Apache-2.0
/*
 * Descriptors of a followed program, looked at before they are closed: which file, and by its
 * position how far it was read or written from the beginning. What was read or written elsewhere,
 * and files that were open for both, are not known.
 */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "follow.h"

#define O_PATH_CLOEXEC (O_PATH | O_CLOEXEC)
#define TWINS 256 /* descriptors among which another one for the same file is looked for */

static char *number(char *to, long value)
{
	char digits[20];
	unsigned int n = 0;

	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n)
		*to++ = digits[--n];
	return to;
}

char *follow_proc(char *to, int pid, const char *what, long fd)
{
	char *at = to + 6;

	th_copy(to, "/proc/", 6);
	at = number(at, pid);
	*at++ = '/';
	th_copy(at, what, th_len(what));
	at += th_len(what);
	if (fd >= 0) {
		*at++ = '/';
		at = number(at, fd);
	}
	*at = '\0';
	return to;
}

/* The text of one of its links; 0: not known. */
unsigned int follow_link(struct target *target, const char *what)
{
	static TH_LARGE char text[FOLLOW_PATH];
	char name[64];
	long n = th_sys(__NR_readlink, follow_proc(name, target->tgid, what, -1), text,
			sizeof(text));

	return n > 0 && *text == '/' ? text_put(&target->rec, 0, text, (unsigned int)n) : 0;
}

/* Position and flags of a descriptor. */
static bool look(int tgid, long fd, long long *pos, unsigned long *flags)
{
	char name[64], text[128];
	long file = th_sys(__NR_open, follow_proc(name, tgid, "fdinfo", fd), O_RDONLY | O_CLOEXEC);
	long n = th_failed(file) ? -1 : th_sys(__NR_read, file, text, sizeof(text) - 1);
	const char *at = text;

	if (!th_failed(file))
		th_sys(__NR_close, file);
	if (n < 6 || !th_starts(text, "pos:\t"))
		return false;
	text[n] = '\0';
	*pos = 0;
	*flags = 0;
	for (at += 5; *at >= '0' && *at <= '9'; at++)
		*pos = *pos * 10 + (*at - '0');
	for (at += th_starts(at, "\nflags:\t") ? 8 : 0; *at >= '0' && *at <= '7'; at++)
		*flags = *flags * 8 + (unsigned long)(*at - '0');
	return true;
}

static bool was_made(const struct target *target, unsigned long long ino)
{
	for (unsigned int i = 0; i < FOLLOW_MADE; i++)
		if (target->made[i] == ino)
			return true;
	return false;
}

static void record(struct target *target, long fd, long file, const struct statx *facts,
		   long long pos, unsigned long flags)
{
	struct rec *rec = &target->rec;
	long long from = fd < FOLLOW_FIRST ? target->began[fd] : 0;
	unsigned int state = from				? TH_EP_INHERITED
			     : was_made(target, facts->stx_ino) ? TH_EP_CREATED
								: 0;
	struct th_episode *ep = episode_new(rec, fd, facts, flags & ~0100000UL, state);

	if (!ep)
		return;
	ep->path = path_asked(rec, file, !facts->stx_nlink);
	ep->open_ns = from || !target->opened ? rec->page->proc.start_ns : target->opened;
	from -= !!from;
	if ((flags & O_ACCMODE) == O_RDWR && (state & TH_EP_CREATED))
		pos = (long long)facts->stx_size; /* all of it is its own */
	else if ((flags & O_ACCMODE) == O_RDWR)
		pos = from;
	if (pos > from)
		run_add(rec, ep,
			TH_OP(flags & O_ACCMODE ? TH_WRITE : TH_READ,
			      flags & O_ACCMODE ? TH_HOW_WRITE : TH_HOW_READ, 1),
			(unsigned long long)from, (unsigned long long)(pos - from));
	ep->close_ns = now_ticks();
	ep->kind = TH_EPISODE;
}

long follow_holds(int pid, const struct statx *file, long but, long end)
{
	char name[64];
	struct statx other;

	for (long fd = 0; fd < end; fd++)
		if (fd != but &&
		    !th_failed(th_sys(__NR_statx, TH_AT_FDCWD, follow_proc(name, pid, "fd", fd), 0,
				      STATX_INO, &other)) &&
		    other.stx_ino == file->stx_ino && other.stx_dev_major == file->stx_dev_major &&
		    other.stx_dev_minor == file->stx_dev_minor)
			return fd;
	return -1;
}

void follow_settle(struct target *target, long fd, bool exec_only)
{
	char name[64];
	struct statx facts;
	long long pos = 0;
	unsigned long flags = 0;
	long file = fd < 0 ? -1
			   : th_sys(__NR_open, follow_proc(name, target->tgid, "fd", fd),
				    O_PATH_CLOEXEC);

	if (file < 0)
		return;
	if (!th_failed(th_sys(__NR_statx, file, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME,
			      &facts)) &&
	    look(target->tgid, fd, &pos, &flags) && (!exec_only || (flags & O_CLOEXEC)) &&
	    slot_kind_of(file, &facts, flags) == SLOT_FILE &&
	    !(target->dup && follow_holds(target->tgid, &facts, fd, TWINS) >= 0))
		record(target, fd, file, &facts, pos, flags);
	if (fd < FOLLOW_FIRST && !exec_only)
		target->began[fd] = 0;
	th_sys(__NR_close, file);
}

/* A descriptor that it has from its parent: what lies before its position is not its own. */
static void note(struct target *target, long fd)
{
	long long pos;
	unsigned long flags;

	if (fd < FOLLOW_FIRST && look(target->tgid, fd, &pos, &flags))
		target->began[fd] = pos + 1;
}

struct entry {
	unsigned long long ino, off;
	unsigned short size;
	unsigned char type;
	char name[];
};

static long number_of(const char *text)
{
	long value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (*text - '0');
	return *text ? -1 : value;
}

void follow_each(struct target *target, long from, long to, enum follow_which which)
{
	static TH_LARGE char buffer[4096];
	char name[64];
	long folder = th_sys(__NR_open, follow_proc(name, target->tgid, "fd", -1),
			     O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n;

	if (folder < 0)
		return;
	while ((n = th_sys(__NR_getdents64, folder, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < n;) {
			const struct entry *entry = (const void *)(buffer + at);
			long fd = entry->name[0] == '.' ? -1 : number_of(entry->name);

			at += entry->size;
			if (fd < from || fd > to)
				continue;
			if (which == FOLLOW_NOTE)
				note(target, fd);
			else
				follow_settle(target, fd, which == FOLLOW_CLOSED_BY_EXEC);
		}
	th_sys(__NR_close, folder);
}
