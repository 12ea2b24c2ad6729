// SPDX-License-Identifier: Apache-2.0
/* Descriptors that were not opened by the process that uses them. */
#include "workload.h"
#include <sys/socket.h>
#include <sys/mman.h>

static char buffer[65536];
static int shared;

static int read_shared(void)
{
	must(read(shared, buffer, 211) == 211, "read");
	saw("f", "read", "read", 307, 518, 211, 1);
	return 0;
}

static int fd_fork(void)
{
	shared = make("f", 10007);
	must(lseek(shared, 0, SEEK_SET) == 0 && read(shared, buffer, 307) == 307, "read");
	saw("f", "read", "read", 0, 307, 307, 1);
	child(read_shared);
	must(read(shared, buffer, 101) == 101, "read");
	saw("f", "read", "read", 518, 619, 101, 1);
	return 0;
}

static int fd_dup(void)
{
	int fd = make("f", 10007), other, high;

	close(make("g", 5003));
	other = dup(fd);
	high = fcntl(fd, F_DUPFD, 200);
	must(pread(other, buffer, 101, 11) == 101 && pread(high, buffer, 103, 500) == 103, "pread");
	saw("f", "read", "read", 11, 112, 101, 1);
	saw("f", "read", "read", 500, 603, 103, 1);
	must(dup2(open("g", O_RDONLY), other) == other, "dup2"); /* other now means g */
	must(pread(other, buffer, 107, 5) == 107, "pread");
	saw("g", "read", "read", 5, 112, 107, 1);
	must(dup3(fd, 77, O_CLOEXEC) == 77 && pread(77, buffer, 109, 3001) == 109, "dup3");
	saw("f", "read", "read", 3001, 3110, 109, 1);
	return 0;
}

static int fd_close_range(void)
{
	int a, b;

	close(make("f", 10007));
	close(make("g", 10007));
	a = open("f", O_RDONLY);
	must(read(a, buffer, 101) == 101, "read");
	saw("f", "read", "read", 0, 101, 101, 1);
	if (syscall(__NR_close_range, a, ~0U, 0))
		return SKIPPED;
	b = open("g", O_RDONLY);
	must(a == b && read(b, buffer, 103) == 103, "read");
	saw("g", "read", "read", 0, 103, 103, 1);
	return 0;
}

static int receive(void)
{
	char space[CMSG_SPACE(sizeof(int))];
	struct iovec v = {buffer, 1};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = space,
			   .msg_controllen = sizeof(space)};
	int fd;

	must(recvmsg(shared, &m, 0) == 1, "recvmsg");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	must(pread(fd, buffer, 499, 1009) == 499, "pread");
	saw("f", "read", "read", 1009, 1508, 499, 1);
	return 0;
}

static int fd_passed(void)
{
	int pair[2], fd = make("f", 10007), status;
	char space[CMSG_SPACE(sizeof(int))] = {};
	struct iovec v = {"x", 1};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = space,
			   .msg_controllen = sizeof(space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	pid_t pid;

	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	pid = fork(); /* the child has fd too, but not under the number that it receives */
	if (!pid) {
		close(fd);
		shared = pair[1];
		_exit(receive());
	}
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	must(sendmsg(pair[0], &m, 0) == 1, "sendmsg");
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int fd_pidfd_getfd(void)
{
	int fd = make("f", 10007), ready[2], pidfd, got;
	pid_t pid;

	must(!pipe(ready), "pipe");
	pid = fork();
	if (!pid) {
		must(read(ready[0], buffer, 1) == 1, "read");
		_exit(0);
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	got = (int)syscall(__NR_pidfd_getfd, pidfd, fd, 0);
	if (got >= 0) {
		must(pread(got, buffer, 401, 607) == 401, "pread");
		saw("f", "read", "read", 607, 1008, 401, 1);
	}
	must(write(ready[1], "x", 1) == 1, "write");
	waitpid(pid, NULL, 0);
	return got < 0 ? SKIPPED : 0;
}

static int fd_reopened(void)
{
	int fd = make("f", 10007), again;
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	again = open(link, O_RDONLY);
	must(again >= 0 && read(again, buffer, 701) == 701, "read");
	saw("f", "read", "read", 0, 701, 701, 1);
	return 0;
}

/* The shell opens the files, the commands use them. */
static int fd_shell(void)
{
	int status;
	pid_t pid;

	close(make("f", 3001));
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "exec head -c 1009 <f >g", NULL);
		_exit(97);
	}
	waitpid(pid, &status, 0);
	/* head chooses its block size: it reads at most the file */
	fact("reads", "f", NULL);
	saw_by(pid, "g", "write", "write", 0, 1009, 1009, 1);
	return WEXITSTATUS(status);
}

static int fd_many(void)
{
	int fds[101];

	close(make("f", 20011));
	for (int i = 0; i < 101; i++)
		fds[i] = open("f", O_RDONLY);
	for (int i = 0; i < 101; i++)
		must(pread(fds[i], buffer, 97, i * 181) == 97, "pread");
	for (int i = 0; i < 101; i++) {
		saw("f", "read", "read", i * 181, i * 181 + 97, 97, 1);
		close(fds[i]);
	}
	return 0;
}

static int fd_memfd(void)
{
	int fd = memfd_create("anonymous", 0);

	must(fd >= 0 && write(fd, buffer, 1009) == 1009, "memfd");
	fact("no_memfd", "anonymous", NULL);
	return 0;
}

static int fd_cloexec_after_exec(void)
{
	int status, fd = make("f", 5003);
	pid_t pid;

	close(fd);
	close(make("g", 3001));
	fd = open("f", O_RDONLY | O_CLOEXEC);
	must(read(fd, buffer, 307) == 307, "read");
	saw("f", "read", "read", 0, 307, 307, 1);
	pid = fork();
	if (!pid) {
		must(pread(fd, buffer, 101, 1000) == 101, "pread");
		saw("f", "read", "read", 1000, 1101, 101, 1);
		/* exec closes fd; cat opens g under the same number */
		execl("/bin/sh", "sh", "-c", "exec cat g >/dev/null 2>&1", NULL);
		_exit(97);
	}
	waitpid(pid, &status, 0);
	fact("reads", "g", NULL);
	return WEXITSTATUS(status);
}

const struct workload fd_cases[] = {
	{"fd_fork", fd_fork},
	{"fd_dup", fd_dup},
	{"fd_close_range", fd_close_range},
	{"fd_passed", fd_passed},
	{"fd_pidfd_getfd", fd_pidfd_getfd},
	{"fd_reopened", fd_reopened},
	{"fd_shell", fd_shell},
	{"fd_many", fd_many},
	{"fd_memfd", fd_memfd},
	{"fd_cloexec_after_exec", fd_cloexec_after_exec},
	{0},
};
