// SPDX-License-Identifier: Apache-2.0
/* Descriptors created, shared or closed by other means than open, dup and close. */
#include "../workloads/workload.h"
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

static char buffer[1 << 16];

static void reads(int fd, long start, long n)
{
	must(pread(fd, buffer, (size_t)n, start) == n, "pread");
	saw("f", "read", "read", start, start + n, n, 1);
}

/* Executed by other cases: reads the inherited descriptor 9. */
static int handles_reader(void)
{
	if (fcntl(9, F_GETFD) < 0)
		return SKIPPED;
	reads(9, 101, 211);
	return 0;
}

static int exec_reader(int fd)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		must(dup3(fd, 9, O_CLOEXEC) == 9 && !ioctl(9, FIONCLEX), "FIONCLEX");
		execl("/proc/self/exe", "workload", "handles_reader", NULL);
		_exit(97);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

/* Close-on-exec changed by ioctl, as in Python's os.set_inheritable. */
static int handles_ioctl_cloexec(void)
{
	int fd = make("f", 4001), other;

	must(!exec_reader(fd), "reader");
	other = open("f", O_RDONLY);
	must(!ioctl(other, FIOCLEX), "FIOCLEX");
	return 0;
}

static int handles_by_handle(void)
{
	char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	struct file_handle *h = (struct file_handle *)room;
	int mount, fd = make("f", 5003), root = open(".", O_RDONLY | O_DIRECTORY);

	close(fd);
	h->handle_bytes = MAX_HANDLE_SZ;
	if (name_to_handle_at(AT_FDCWD, "f", h, &mount, 0))
		return SKIPPED;
	fd = open_by_handle_at(root, h, O_RDWR);
	if (fd < 0)
		return SKIPPED;
	reads(fd, 17, 1009);
	must(write(fd, buffer, 307) == 307, "write");
	saw("f", "write", "write", 0, 307, 307, 1);
	return 0;
}

static struct mmsghdr with_right(struct iovec *v, char *room, size_t size)
{
	struct mmsghdr m = {.msg_hdr = {.msg_iov = v,
					.msg_iovlen = 1,
					.msg_control = room,
					.msg_controllen = size}};

	return m;
}

/* SCM_RIGHTS through sendmmsg and recvmmsg. */
static int handles_mmsg(void)
{
	char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 1;
	struct iovec v = {&byte, 1};
	struct mmsghdr m = with_right(&v, room, sizeof(room));
	struct cmsghdr *head = CMSG_FIRSTHDR(&m.msg_hdr);
	int pair[2], fd = make("f", 3001);
	pid_t pid;

	must(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), "socketpair");
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(int));
	must(sendmmsg(pair[0], &m, 1, 0) == 1, "sendmmsg");
	pid = fork();
	if (!pid) {
		char got[CMSG_SPACE(sizeof(int))];
		struct mmsghdr in = with_right(&v, got, sizeof(got));

		close(fd);
		must(recvmmsg(pair[1], &in, 1, 0, NULL) == 1, "recvmmsg");
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&in.msg_hdr)), sizeof(int));
		reads(fd, 7, 503);
		_exit(0);
	}
	must(waitpid(pid, NULL, 0) == pid, "waitpid");
	return 0;
}

static int stack[65536];

static int close_and_open(void *arg)
{
	int fd = *(int *)arg;

	close(fd);
	must(open("g", O_RDONLY) == fd, "the same number");
	must(pread(fd, buffer, 101, 0) == 101, "pread");
	saw("g", "read", "read", 0, 101, 101, 1);
	_exit(0);
}

/* A child process that shares the descriptor table. */
static int handles_shared_table(void)
{
	int other = make("g", 1009), fd = make("f", 2003);
	pid_t pid;

	must(other > 0 && pread(fd, buffer, 11, 0) == 11, "pread");
	saw("f", "read", "read", 0, 11, 11, 1);
	pid = clone(close_and_open, stack + 65536, CLONE_FILES | SIGCHLD, &fd);
	must(pid > 0 && waitpid(pid, NULL, 0) == pid, "clone");
	must(pread(fd, buffer, 13, 0) == 13, "pread what the child put here");
	saw("g", "read", "read", 0, 13, 13, 1);
	return 0;
}

static int alone(void *arg)
{
	int fd = *(int *)arg;

	must(!unshare(CLONE_FILES), "unshare");
	close(fd);
	_exit(0);
}

/* A shared table that is unshared: later closes are private. */
static int handles_unshared_table(void)
{
	int fd = make("f", 2003);
	pid_t pid = clone(alone, stack + 65536, CLONE_FILES | SIGCHLD, &fd);

	must(pid > 0 && waitpid(pid, NULL, 0) == pid, "clone");
	reads(fd, 3, 307);
	return 0;
}

static int handles_close_range_exec(void)
{
	int fd = make("f", 4001);
	pid_t pid = fork();
	int status;

	if (!pid) {
		must(dup2(fd, 9) == 9 && dup2(fd, 40) == 40, "dup2");
		must(!close_range(3, ~0U, CLOSE_RANGE_CLOEXEC), "close_range");
		must(!fcntl(9, F_SETFD, 0), "F_SETFD");
		reads(40, 7, 13);
		execl("/proc/self/exe", "workload", "handles_reader", NULL);
		_exit(97);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

/* Another process's descriptor, opened by its path: a separate file description. */
static int handles_other_proc(void)
{
	int go[2], fd = make("f", 4001);
	char path[64], byte;
	pid_t pid;

	must(!pipe(go), "pipe");
	pid = fork();
	if (!pid) {
		close(go[1]);
		_exit(read(go[0], &byte, 1) != 0);
	}
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	close(fd);
	fd = open(path, O_RDONLY);
	must(fd >= 0, path);
	must(read(fd, buffer, 103) == 103, "read");
	saw("f", "read", "read", 0, 103, 103, 1);
	close(go[1]);
	must(waitpid(pid, NULL, 0) == pid, "waitpid");
	return 0;
}

/* Many descriptors, duplicated, closed and replaced. */
static int handles_moved_about(void)
{
	int fd = make("f", 60013), at;

	for (int i = 0; i < 97; i++) {
		at = dup3(fd, 100 + i, i % 2 ? O_CLOEXEC : 0);
		must(at == 100 + i, "dup3");
		reads(at, i * 601, 211);
		if (i % 3 == 0)
			close(at);
	}
	must(dup2(150, fd) == fd, "dup2 over it");
	reads(fd, 11, 17);
	return 0;
}

/* From memory into a pipe, by tee into a second pipe, from there into a file. */
static int handles_pipes(void)
{
	struct iovec v = {buffer, 1009};
	int p[2], q[2], fd = open("f", O_WRONLY | O_CREAT, 0644);

	must(!pipe(p) && !pipe(q), "pipe");
	must(vmsplice(p[1], &v, 1, 0) == 1009, "vmsplice");
	must(tee(p[0], q[1], 4096, 0) == 1009, "tee");
	must(read(p[0], buffer, 4096) == 1009, "read");
	must(splice(q[0], NULL, fd, NULL, 4096, 0) == 1009, "splice");
	saw("f", "write", "splice", 0, 1009, 1009, 1);
	fact("piped", "f", "3027 2018"); /* bytes read from pipes, written to pipes */
	return 0;
}

const struct workload handle_cases[] = {
	{"handles_pipes", handles_pipes},
	{"handles_reader", handles_reader},
	{"handles_ioctl_cloexec", handles_ioctl_cloexec},
	{"handles_by_handle", handles_by_handle},
	{"handles_mmsg", handles_mmsg},
	{"handles_shared_table", handles_shared_table},
	{"handles_unshared_table", handles_unshared_table},
	{"handles_close_range_exec", handles_close_range_exec},
	{"handles_other_proc", handles_other_proc},
	{"handles_moved_about", handles_moved_about},
	{0},
};
