// SPDX-License-Identifier: Apache-2.0
/*
 * The filter, and the two processes that hold its other end: one serves, the other one waits and
 * serves after it, so that the death of one stops nobody. They are no children of the program, and
 * have nothing open of it.
 */
#include <linux/audit.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/poll.h>
#include <linux/stat.h>
#include "follow.h"

#define CLONE_FILES 0x400UL
#define WALL 0x40000000
#define NO_NEW_PRIVS 38
#define TRIES 16	     /* of the serving process */
#define PATIENCE 100000	     /* times 100 us at least */
#define OURS 0x746e696874ULL /* as the sixth argument: a call that nobody is told of */
#define HELD 4096	     /* descriptors of the program among which a file is looked for */

static const unsigned short told[] = {
	__NR_open,	  __NR_openat,	   __NR_openat2, __NR_creat,	__NR_close,
	__NR_close_range, __NR_dup,	   __NR_dup2,	 __NR_dup3,	__NR_rename,
	__NR_renameat,	  __NR_renameat2,  __NR_unlink,	 __NR_unlinkat, __NR_rmdir,
	__NR_link,	  __NR_linkat,	   __NR_mkdir,	 __NR_mkdirat,	__NR_execve,
	__NR_execveat,	  __NR_exit_group,
};
#define TOLD (sizeof(told) / sizeof(*told))

static long put_filter(void)
{
	struct sock_filter rules[TOLD + 11];
	unsigned int n = 0;

	rules[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  __builtin_offsetof(struct seccomp_data, arch));
	rules[n++] =
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	for (unsigned int i = 0; i < 2; i++) { /* both halves: the first differs, go on behind */
		rules[n++] = (struct sock_filter)BPF_STMT(
			BPF_LD | BPF_W | BPF_ABS,
			__builtin_offsetof(struct seccomp_data, args[5]) + 4 * i);
		rules[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)(OURS >> 32 * i), 0, 3 - 2 * i);
	}
	rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	rules[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  __builtin_offsetof(struct seccomp_data, nr));
	for (unsigned int i = 0; i < TOLD; i++)
		rules[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, told[i],
							  (unsigned char)(TOLD - i), 0);
	rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	rules[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	struct sock_fprog program = {(unsigned short)n, rules};
	long fd = th_sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			 &program);

	if (fd != -13 /* EACCES: without privileges */ ||
	    th_sys(__NR_prctl, NO_NEW_PRIVS, 1, 0, 0, 0))
		return fd;
	return th_sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		      &program);
}

static void pause_a_little(void)
{
	long time[2] = {0, 100000};

	th_sys(__NR_nanosleep, time, NULL);
}

static bool wait_for(const int *word)
{
	for (unsigned int i = 0; i < PATIENCE; i++) {
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE))
			return true;
		pause_a_little();
	}
	return false;
}

/*
 * The descriptor of a file that a serving process made before it died, where the program has it;
 * -1: it has not, and makes the file itself: nobody's file is in its way. The file is the one of
 * that name which is open here: it stays so until the program has its answer.
 */
static long handed(const struct follow *follow)
{
	struct statx facts;

	if (!follow->making ||
	    th_failed(th_sys(__NR_statx, TH_AT_FDCWD, follow->path, AT_SYMLINK_NOFOLLOW,
			     STATX_BASIC_STATS, &facts)) ||
	    follow_holds((int)th_sys(__NR_getpid), &facts, -1, HELD) < 0)
		return -1;
	long fd = follow_holds((int)follow->call.pid, &facts, -1, HELD);

	if (fd < 0 && !facts.stx_size)
		th_sys(__NR_unlink, follow->path);
	return fd;
}

static void close_others(int listener)
{
	if (listener)
		th_sys(__NR_close_range, 0, listener - 1, 0);
	th_sys(__NR_close_range, listener + 1, ~0U, 0);
}

/* What a serving process that died had in hand goes on, unless the program has its answer. */
static void let_go(struct follow *follow, int listener)
{
	bool waits = follow->call.id &&
		     !th_sys(__NR_ioctl, listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &follow->call.id);
	long fd = waits ? handed(follow) : -1;
	struct seccomp_notif_resp answer = {
		.id = follow->call.id,
		.val = fd < 0 ? 0 : fd,
		.flags = fd < 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0,
	};

	if (waits)
		th_sys(__NR_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	th_zero(&follow->call, sizeof(follow->call));
	follow->making = 0;
	close_others(listener);
}

void follow_split(struct follow *follow, int listener)
{
	for (unsigned int i = 0; i < TRIES; i++) {
		int status = 0;
		long pid = th_sys(__NR_clone, CLONE_FILES | 17 /* SIGCHLD */, 0, 0, 0, 0);

		if (pid <= 0)
			return;
		while (th_sys(__NR_wait4, pid, &status, WALL, NULL) == -4)
			;
		if (!status)
			th_sys(__NR_exit_group, 0);
		let_go(follow, listener);
	}
}

static void begin_keeping(struct follow *follow)
{
	th_sys(__NR_setsid);
	if (!wait_for(&follow->listener) || follow->listener < 0)
		return;
	int listener = follow->listener - 1;

	if (th_failed(th_sys(__NR_unshare, CLONE_FILES)))
		return;
	close_others(listener);
	__atomic_store_n(&follow->ready, 1, __ATOMIC_RELEASE);
	follow_split(follow, listener);
	follow_serve(follow, listener);
}

/* A process that is nobody's child of the program; it must begin before the filter is there. */
static bool begin_process(struct follow *follow)
{
	long between = th_sys(__NR_clone, CLONE_FILES, 0, 0, 0, 0);
	int status = 0;

	if (!between) {
		long pid = th_sys(__NR_clone, CLONE_FILES, 0, 0, 0, 0);

		if (!pid) {
			begin_keeping(follow);
			th_sys(__NR_exit_group, 0);
		}
		follow->keeper = (int)pid;
		th_sys(__NR_exit_group, pid < 0);
	}
	while (between > 0 && th_sys(__NR_wait4, between, &status, WALL, NULL) == -4)
		;
	return between > 0 && !status;
}

/* Whether both are there to answer; false: the one that should have begun died before. */
static bool begun(const struct follow *follow)
{
	long died = th_sys(__NR_pidfd_open, follow->keeper, 0), time[2] = {0, 100000};
	struct pollfd wait = {.fd = (int)died, .events = POLLIN};

	if (th_failed(died))
		return false;
	while (!__atomic_load_n(&follow->ready, __ATOMIC_ACQUIRE) &&
	       th_sys(__NR_ppoll, &wait, 1, time, NULL, 8) <= 0)
		;
	th_sys(__NR_close, died, 0, 0, 0, 0, OURS);
	return __atomic_load_n(&follow->ready, __ATOMIC_ACQUIRE);
}

void follow_start(struct th_process_page *next)
{
	long at =
		th_sys(__NR_mmap, 0, sizeof(struct follow), 3, 0x21 /* shared, anonymous */, -1, 0);
	struct follow *follow = (struct follow *)at;

	if (th_failed(at))
		return;
	follow->first = follow->whole = next;
	if (!begin_process(follow)) {
		th_sys(__NR_munmap, follow, sizeof(*follow));
		return;
	}
	long listener = put_filter();

	/* -1: followed already, or not allowed here */
	__atomic_store_n(&follow->listener, th_failed(listener) ? -1 : (int)listener + 1,
			 __ATOMIC_RELEASE);
	if (!th_failed(listener)) {
		if (begun(follow))
			next->unentered |= TH_FOLLOWED;
		/* ours must go: where the others died, nobody would answer, and calls wait for ever */
		th_sys(__NR_close, listener, 0, 0, 0, 0, OURS);
	}
	th_sys(__NR_munmap, follow, sizeof(*follow));
}
