// SPDX-License-Identifier: Apache-2.0
/*
 * Sets a storage class of MooseFS with its tool, on the open file (/proc/self/fd/N). The program
 * must not notice a child: exec sets a child's exit signal to SIGCHLD, so the tool is started and
 * waited for by a process in between, cloned without a signal and without exec: wait(), SIGCHLD
 * and the counts of children are not affected. A tool that takes too long is killed.
 */
#include <linux/sched.h>
#include <linux/wait.h>
#include "store.h"

#define EIO 5
#define EINVAL 22
#define ETIMEDOUT 110
#define O_RDWR_CLOEXEC 02000002
#define F_SETFD 2
#define POLLIN 1
#define PATIENCE_S 5
#define MAX_CLASS 256
#define MAX_SIGNALS 1000
#define EINTR 4
#define SIGCHLD 17
#define SIGKILL 9
#define SIG_SETMASK 2
#define PR_SET_PDEATHSIG 1

struct pollfd32 {
	int fd;
	short events, revents;
};

/* In the child: redirect the standard streams to /dev/null and execute the tool. */
static void become(const char *tool, const char *class, int fd)
{
	char path[TH_FD_NAME];
	const char *const argv[] = {tool, class, path, NULL}, *const envp[] = {NULL};
	long null = th_sys(__NR_openat, TH_AT_FDCWD, "/dev/null", O_RDWR_CLOEXEC, 0);

	/* a file with the number of a standard stream is moved */
	if (fd < 3)
		fd = (int)th_sys(__NR_fcntl, fd, 0 /* F_DUPFD */, 3);
	for (int i = 0; i < 3; i++)
		th_sys(__NR_dup2, null, i);
	th_sys(__NR_fcntl, fd, F_SETFD, 0);
	th_fd_name(path, fd);
	th_sys(__NR_execve, tool, argv, envp);
	th_sys(__NR_exit_group, 127);
}

static bool name_fits(const char *name, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char c = name[i], lower = c | 0x20;

		if (!(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'z') && c != '_' &&
		    c != '.' && (c != '-' || !i))
			return false;
	}
	return size > 0;
}

/* The process in between: runs no handler of the program, and fails if the tool failed. */
static void run_tool(const char *tool, const char *class, int fd)
{
	struct {
		const void *handler;
		unsigned long flags;
		const void *restorer;
		uint64_t mask;
	} usual = {0};
	uint64_t all = ~0ull, before = 0;
	int status = -1;

	th_sys(__NR_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
	th_sys(__NR_rt_sigaction, SIGCHLD, &usual, 0, sizeof(all));
	th_sys(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);
	long pid = th_sys(__NR_clone, SIGCHLD, 0, 0, 0, 0);

	if (!pid) {
		th_sys(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL); /* with the process in between */
		th_sys(__NR_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof(before));
		become(tool, class, fd);
	}
	if (pid > 0)
		th_sys(__NR_wait4, pid, &status, 0, 0);
	th_sys(__NR_exit_group, status ? 1 : 0);
}

/* Whether the process ended in time; signals of the program do not shorten the wait. */
static bool wait_for_end(int pidfd)
{
	struct pollfd32 wait = {.fd = pidfd, .events = POLLIN};
	int64_t patience[2] = {PATIENCE_S, 0};
	long ready = -EINTR;

	for (int i = 0; i < MAX_SIGNALS && ready == -EINTR; i++) /* ppoll updates `patience` */
		ready = th_sys(__NR_ppoll, &wait, 1, patience, 0, 0);
	return ready == 1;
}

/* `tool` ends with a NUL. The name is copied, because a child finds the value's memory zeroed. */
long tag_class(const char *tool, const char *name, size_t size, int fd)
{
	char class[MAX_CLASS];
	int pidfd = -1, status = -1;

	if (size >= sizeof(class) || !name_fits(name, size))
		return -EINVAL;
	th_copy(class, name, size);
	class[size] = 0;
	long pid = th_sys(__NR_clone, CLONE_PIDFD, 0, &pidfd, 0, 0);

	if (!pid)
		run_tool(tool, class, fd);
	if (th_failed(pid))
		return pid;
	bool ended = wait_for_end(pidfd);

	if (!ended)
		th_sys(__NR_kill, pid, SIGKILL);
	th_sys(__NR_wait4, pid, &status, __WCLONE, 0);
	th_sys(__NR_close, pidfd);
	return !ended ? -ETIMEDOUT : status ? -EIO : 0;
}
