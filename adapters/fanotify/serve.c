// SPDX-License-Identifier: Apache-2.0
/* The agent: takes the kernel's questions and answers them; every answer is yes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent.h"

#define QUESTIONS 64 /* taken at once: each is an open file */
#define FILES 4096
#define NICE (-10)
#ifndef FAN_MARK_EVICTABLE
#define FAN_MARK_EVICTABLE 0x200
#endif

static int questions = -1;

static void allow(int fd)
{
	struct fanotify_response response = {.fd = fd, .response = FAN_ALLOW};

	if (write(questions, &response, sizeof(response)) < 0 && errno != ENOENT)
		_exit(3); /* they are let go */
}

/*
 * Closed first: some file systems keep what is deleted while somebody has it open, under another
 * name. The kernel takes the number as that of the question, the oldest one first.
 */
void answer(int fd)
{
	close(fd);
	allow(fd);
}

/*
 * A file that holds something is not asked about again until it is changed: programs, libraries and
 * inputs are opened often. The kernel forgets it with the file (Linux 5.19; older ones ask on).
 * Whoever asked goes on after that: what it changes then is seen. What another one emptied
 * meanwhile is asked about again.
 */
static void answer_for_good(int fd)
{
	const unsigned int known = FAN_MARK_IGNORED_MASK | FAN_MARK_EVICTABLE;
	static bool unknown;
	struct stat now;

	if (!unknown)
		unknown = fanotify_mark(questions, FAN_MARK_ADD | known, FAN_OPEN_PERM, fd, NULL) &&
			  errno == EINVAL;
	if (!unknown && !fstat(fd, &now) && !now.st_size)
		fanotify_mark(questions, FAN_MARK_REMOVE | FAN_MARK_IGNORED_MASK, FAN_OPEN_PERM, fd,
			      NULL);
	answer(fd);
}

__attribute__((format(printf, 2, 3))) static void fail(struct shared *shared, const char *text, ...)
{
	va_list list;

	va_start(list, text);
	vsnprintf(shared->why, sizeof(shared->why), text, list);
	va_end(list);
	shared->ready = -1;
}

/* All of the file system, which other name spaces have mounted too; else this mount of it. */
static bool watch(const char *place)
{
	static const unsigned int whole[] = {FAN_MARK_FILESYSTEM, FAN_MARK_MOUNT};

	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (!fanotify_mark(questions, FAN_MARK_ADD | whole[i], FAN_OPEN_PERM, AT_FDCWD,
				   place))
			return true;
	return false;
}

static bool mark(const struct job *job, struct shared *shared)
{
	questions = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_UNLIMITED_QUEUE |
					  FAN_REPORT_TID,
				  O_RDONLY | O_LARGEFILE | O_CLOEXEC | O_NONBLOCK);
	if (questions < 0) {
		fail(shared, "fanotify: %s", strerror(errno));
		return false;
	}
	for (const char *const *mount = job->mounts; *mount; mount++)
		if (!watch(*mount)) {
			fail(shared, "fanotify on %s: %s", *mount, strerror(errno));
			return false;
		}
	return true;
}

/* Everybody waits for us, so nobody comes before us; our other threads are as others. */
static void come_first(void)
{
	struct sched_param first = {.sched_priority = 1};

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first))
		setpriority(PRIO_PROCESS, 0, NICE);
}

static void make_room(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < FILES) {
		limit.rlim_cur = FILES < limit.rlim_max ? FILES : limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Whether a setting of the table is made by a tool. */
static bool has_tools(const struct tag_table *t)
{
	const struct tag_set *sets =
		tag_rows(t, t->header->sets.at, t->header->sets.count, sizeof(*sets));

	for (uint32_t i = 0; sets && i < t->header->sets.count; i++) {
		const struct tag_section *ways =
			tag_rows(t, sets[i].way_at, sets[i].ways, sizeof(*ways));

		for (uint32_t way = 0; ways && way < sets[i].ways; way++) {
			const struct tag_setting *said =
				tag_rows(t, ways[way].at, ways[way].count, sizeof(*said));

			for (uint32_t k = 0; said && k < ways[way].count; k++)
				if (said[k].flags & TAG_CLASS)
					return true;
		}
	}
	return false;
}

/* Waits for a question, at most until the next signal of stay_awake. */
static void take_all(struct opened *opened, struct shared *shared)
{
	struct fanotify_event_metadata events[QUESTIONS];
	ssize_t size = read(questions, events, sizeof(events));

	for (struct fanotify_event_metadata *event = events; FAN_EVENT_OK(event, size);
	     event = FAN_EVENT_NEXT(event, size)) {
		shared->beat++;
		if (event->vers != FANOTIFY_METADATA_VERSION)
			_exit(4);
		if (event->fd < 0)
			continue;
		switch (file_opened(opened, event->fd, event->pid)) {
		case OPENED_LATER:
			break;
		case OPENED_FULL:
			answer_for_good(event->fd);
			break;
		case OPENED:
			answer(event->fd);
		}
	}
}

void serve(const struct job *job, struct shared *shared)
{
	static struct opened opened;

	make_room();
	come_first();
	if (!stay_awake()) {
		fail(shared, "timer: %s", strerror(errno));
		return;
	}
	opened.run = job->run;
	opened.descriptors = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!hinter_open(&opened.hinter, job->table)) {
		fail(shared, "%s: no rule table", job->table);
		return;
	}
	opened.hinter.agent = true;
	opened.hinter.shown = shown_beside;
	opened.tools = has_tools(&opened.hinter.table);
	for (const char *const *place = job->mounts; *place; place++)
		learn_store(*place);
	tag_journal_keep(&opened.hinter.journal);
	if (!begin_later(&opened.hinter)) {
		fail(shared, "threads: %s", strerror(errno));
		return;
	}
	if (!mark(job, shared))
		return;
	shared->ready = 1;
	for (;;) {
		shared->beat++;
		take_all(&opened, shared);
	}
}
