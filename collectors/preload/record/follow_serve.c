// SPDX-License-Identifier: Apache-2.0
/* In our process: takes each call, notes it, and lets it go on. */
#include <linux/poll.h>
#include "../hook/core.h"
#include "follow.h"

#define SET_FLAGS SECCOMP_IOW(4, __u64) /* newer than some headers */

#define LOOK_MS 500 /* whether the process that waits is still there */

/* A number in a line of /proc/PID/status; -1: not there. */
static long status_number(const char *text, const char *key, unsigned int base)
{
	for (; *text; text++) {
		if (!th_starts(text, key))
			continue;
		long value = 0;

		for (text += th_len(key); *text == '\t' || *text == ' '; text++)
			;
		for (; *text >= '0' && *text <= '9'; text++)
			value = value * base + (*text - '0');
		return value;
	}
	return -1;
}

static bool read_status(int tid, int *tgid, int *ppid, long *mask)
{
	char name[64], text[512];
	long fd = th_sys(__NR_open, follow_proc(name, tid, "status", -1), 02000000, 0);
	long n = th_failed(fd) ? -1 : th_sys(__NR_read, fd, text, sizeof(text) - 1);

	if (!th_failed(fd))
		th_sys(__NR_close, fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	*tgid = (int)status_number(text, "\nTgid:", 10);
	*ppid = (int)status_number(text, "\nPPid:", 10);
	*mask = status_number(text, "\nUmask:", 8);
	return *tgid > 0;
}

static struct target *find(struct follow *follow, int tgid)
{
	for (unsigned int i = 0; i < FOLLOW_TARGETS; i++)
		if (follow->targets[i].tgid == tgid)
			return &follow->targets[i];
	return NULL;
}

/* A process that begins to be followed; its record is made here but for the first one. */
static struct target *add(struct follow *follow, int tgid, int ppid)
{
	struct target *target = find(follow, 0), *parent = find(follow, ppid);
	struct th_process_page *page = follow->first;

	if (!target)
		return NULL;
	th_zero(target, sizeof(*target));
	if (!page)
		page = process_followed(tgid, ppid, parent ? parent->rec.epoch : 0);
	if (!page)
		return NULL;
	follow->first = NULL;
	target->rec.page = page;
	target->rec.epoch = page->proc.epoch;
	target->rec.chunks[TH_PATH] = &target->rec.page->head;
	target->tgid = tgid;
	if (parent) {
		page->proc.exe = parent->rec.page->proc.exe;
		page->proc.cwd = follow_link(target, "cwd");
	}
	return target;
}

/* The process of a thread; after an exec, what it is now. */
static struct target *target_of(struct follow *follow, int tid)
{
	int tgid = 0, ppid = 0;
	long mask = 0;

	if (!read_status(tid, &tgid, &ppid, &mask))
		return NULL;
	struct target *target = find(follow, tgid);

	if (!target) {
		target = add(follow, tgid, ppid);
		if (target)
			target->check = target->fresh = true;
	}
	if (target)
		target->umask = (unsigned int)mask;
	if (target && target->check) {
		char name[64];
		enum th_class class =
			th_classify(TH_AT_FDCWD, follow_proc(name, tgid, "exe", -1), 0, NULL);

		target->check = false;
		target->skip = class == TH_CLASS_DYNAMIC;
		if (!target->skip && target->fresh) {
			target->fresh = false;
			follow_each(target, 0, ~0U, FOLLOW_NOTE);
		}
	}
	return target;
}

static void answer(struct follow *follow, int listener)
{
	struct seccomp_notif_resp resp = {.id = follow->call.id,
					  .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
	struct target *target = target_of(follow, (int)follow->call.pid);
	bool done = false;

	if (target && !target->skip)
		done = follow_call(follow, target, listener);
	if (target &&
	    (follow->call.data.nr == __NR_execve || follow->call.data.nr == __NR_execveat))
		target->check = true;
	if (!done)
		th_sys(__NR_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	if (target && follow->call.data.nr == __NR_exit_group)
		target->tgid = 0;
}

/* What another process noted in memory that it mapped alone is not to be had here. */
static void take_over(struct follow *follow)
{
	for (unsigned int i = 0; i < FOLLOW_TARGETS; i++) {
		struct target *target = &follow->targets[i];

		if (target->tgid && !arena_offset(target->rec.page))
			target->tgid = 0;
		for (unsigned int k = 0; target->tgid && k <= TH_EVENT; k++)
			if (!arena_offset(target->rec.chunks[k]))
				target->rec.chunks[k] = NULL;
	}
}

void follow_serve(struct follow *follow, int listener)
{
	struct pollfd wait = {.fd = listener, .events = POLLIN};
	long keeper = th_sys(__NR_getppid);

	take_over(follow);
	th_sys(__NR_ioctl, listener, SET_FLAGS, 1 /* wake on this processor */);
	for (;;) {
		long n = th_sys(__NR_poll, &wait, 1, LOOK_MS);

		if (th_sys(__NR_getppid) != keeper) {
			follow_split(follow, listener);
			keeper = th_sys(__NR_getppid);
		}
		if (!n || n == -4)
			continue;
		if (n < 0 || !(wait.revents & POLLIN)) { /* the last one is gone */
			follow->whole->proc.flags |= TH_FOLLOWED_ALL;
			return;
		}
		th_zero(&follow->call, sizeof(follow->call));
		follow->making = 0;
		if (!th_failed(th_sys(__NR_ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV,
				      &follow->call))) /* or it was killed meanwhile */
			answer(follow, listener);
		th_zero(&follow->call, sizeof(follow->call));
	}
}
