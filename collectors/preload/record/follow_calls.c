// SPDX-License-Identifier: Apache-2.0
/* What is done with each call of a followed program before it goes on. */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "../hook/core.h"
#include "follow.h"

#define NOT_THERE (-2) /* ENOENT */

/* Whether names mean the same to the program and to us. */
static bool same_root(int tgid)
{
	char name[64];
	struct statx its, ours;

	return !th_failed(th_sys(__NR_statx, TH_AT_FDCWD, follow_proc(name, tgid, "root", -1), 0,
				 STATX_BASIC_STATS, &its)) &&
	       !th_failed(th_sys(__NR_statx, TH_AT_FDCWD, "/", 0, STATX_BASIC_STATS, &ours)) &&
	       its.stx_ino == ours.stx_ino && its.stx_dev_major == ours.stx_dev_major &&
	       its.stx_dev_minor == ours.stx_dev_minor;
}

/*
 * A file that is not there yet is made here and handed over: so it gets its hints before its first
 * byte. Whatever is in the way, the program makes the call itself.
 */
static bool create(struct follow *follow, struct target *target, int listener, unsigned int flags,
		   unsigned int mode)
{
	const char *path = follow->path;
	struct statx facts;

	if (!(flags & O_CREAT) || (flags & (O_PATH | O_DIRECTORY | __O_TMPFILE)) ||
	    th_sys(__NR_statx, TH_AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &facts) !=
		    NOT_THERE ||
	    !same_root(target->tgid))
		return false;
	th_sys(__NR_umask, target->umask);
	follow->making = 1;
	long fd = th_sys(__NR_open, path, flags | O_EXCL | O_CLOEXEC, mode);

	if (th_failed(fd))
		return false;
	if (!th_failed(th_sys(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &facts)))
		target->made[target->made_count++ % FOLLOW_MADE] = facts.stx_ino;
	th_created(TH_AT_FDCWD, path, (int)fd);
	struct seccomp_notif_addfd hand = {
		.id = follow->call.id,
		.srcfd = (unsigned int)fd,
		.newfd_flags = flags & O_CLOEXEC,
	};
	/* in two steps: were we killed in one that also answers, the open would give 0 */
	struct seccomp_notif_resp answer = {
		.id = follow->call.id,
		.val = th_sys(__NR_ioctl, listener, SECCOMP_IOCTL_NOTIF_ADDFD, &hand),
	};
	bool done = !th_failed(answer.val) &&
		    !th_failed(th_sys(__NR_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, &answer));

	th_sys(__NR_close, fd); /* last: whoever takes over knows by it whose file that is */
	return done;
}

static bool opens(struct follow *follow, struct target *target, int listener)
{
	const struct seccomp_notif *call = &follow->call;
	const unsigned long long *arg = call->data.args;
	bool at = call->data.nr == __NR_openat;
	unsigned int flags = call->data.nr == __NR_creat ? O_CREAT | O_TRUNC | O_WRONLY
							 : (unsigned int)arg[at + 1];
	unsigned int mode = (unsigned int)arg[call->data.nr == __NR_creat ? 1 : at + 2];

	target->opened = now_ticks();
	return call->data.nr != __NR_openat2 && (flags & O_CREAT) &&
	       follow_path(call, at ? 0 : -1, at, follow->path) &&
	       create(follow, target, listener, flags, mode);
}

static void exits(struct target *target, int code)
{
	follow_each(target, 0, ~0U, FOLLOW_ALL);
	target->rec.page->proc.exit_status = (code & 0xff) << 8;
	target->rec.page->proc.end_ns = now_ticks();
	target->rec.page->proc.kind = TH_EXIT;
}

bool follow_call(struct follow *follow, struct target *target, int listener)
{
	const struct seccomp_notif *call = &follow->call;
	const unsigned long long *arg = call->data.args;

	follow_settle_name(target);
	switch (call->data.nr) {
	case __NR_open:
	case __NR_openat:
	case __NR_openat2:
	case __NR_creat:
		return opens(follow, target, listener);
	case __NR_close:
		follow_settle(target, (int)arg[0], false);
		break;
	case __NR_close_range:
		if (!(arg[2] & 4 /* only marked */))
			follow_each(target, (unsigned int)arg[0], (unsigned int)arg[1], FOLLOW_ALL);
		break;
	case __NR_dup2:
	case __NR_dup3:
		if (arg[0] != arg[1])
			follow_settle(target, (int)arg[1], false);
		target->dup = true;
		break;
	case __NR_dup:
		target->dup = true;
		break;
	case __NR_execve:
	case __NR_execveat:
		follow_each(target, 0, ~0U, FOLLOW_CLOSED_BY_EXEC);
		break;
	case __NR_exit_group:
		exits(target, (int)arg[0]);
		break;
	default:
		follow_name(target, call);
	}
	return false;
}
