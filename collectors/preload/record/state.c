// SPDX-License-Identifier: Apache-2.0
/* Working and root directories, mounts, waits, users, namespaces and seccomp filters. */
#include <linux/stat.h>
#include "handlers.h"
#include "process.h"

#define PR_SET_SECCOMP_MODE 22

void do_chdir(struct rec *rec, const struct th_call *c)
{
	if (!c->ret)
		process_moved(rec);
}

void before_chroot(struct rec *rec, struct th_call *c)
{
	struct statx facts;

	if (!th_failed(th_sys(__NR_statx, TH_AT_FDCWD, c->arg[0], 0, STATX_TYPE, &facts)))
		c->note = path_at(rec, TH_AT_FDCWD, (const char *)c->arg[0]);
}

void do_chroot(struct rec *rec, const struct th_call *c)
{
	if (!c->ret)
		process_rooted(rec, (unsigned int)c->note);
}

void do_mount(struct rec *rec, const struct th_call *c)
{
	if (c->ret)
		return;
	__atomic_fetch_add(&arena->remounts, 1, __ATOMIC_RELAXED);
	process_remounted(rec);
}

void do_wait4(struct rec *rec, const struct th_call *c)
{
	int status = c->ret > 0 && c->arg[1] ? *(const int *)c->arg[1] : 0x7f;

	process_remounted(rec);
	if ((status & 0xff) != 0x7f) /* 0x7f: stopped, or status not requested */
		process_waited(rec, (int)c->ret, status);
}

/* The fields of siginfo_t that waitid fills. */
void do_waitid(struct rec *rec, const struct th_call *c)
{
	const int *info = (const int *)c->arg[2];

	process_remounted(rec);
	if (c->ret || !info || !info[3] || info[2] < 1 || info[2] > 3)
		return;
	process_waited(rec, info[3], info[2] == 1 ? (info[5] & 0xff) << 8 : info[5] & 0x7f);
}

void do_credentials(struct rec *rec, const struct th_call *c)
{
	if (!c->ret)
		process_foreign(rec);
}

/* Children are created in the new or joined namespace; the process itself stays. */
void do_spaces(struct rec *rec, const struct th_call *c)
{
	unsigned long asked = (unsigned long)c->arg[c->nr == __NR_setns];

	(void)rec;
	if (!c->ret && (!asked || (asked & TH_CLONE_NEWPID)))
		image.other_space |= TH_SPACE_CALLED;
}

/* Stop recording, because a filter may forbid the calls of the recorder. */
void do_seccomp(struct rec *rec, const struct th_call *c)
{
	bool filter = c->nr == __NR_seccomp ? c->arg[0] < 2 : c->arg[0] == PR_SET_SECCOMP_MODE;

	if (!c->ret && filter)
		process_stopped(rec);
}
