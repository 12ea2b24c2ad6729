// SPDX-License-Identifier: Apache-2.0
/* Ways in which processes start and end. */
#include "workload.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

static char buffer[65536];
static int given;

static int write_g(void)
{
	int fd = open("g", O_WRONLY | O_CREAT | O_APPEND, 0644);

	must(write(fd, buffer, 307) == 307, "write");
	return 0;
}

static int process_fork(void)
{
	long at = 0;

	for (int i = 0; i < 5; i++) {
		int status;
		pid_t pid = fork();

		if (!pid)
			_exit(write_g());
		waitpid(pid, &status, 0);
		saw_by(pid, "g", "write", "write", at, at + 307, 307, 1);
		at += 307;
	}
	return 0;
}

static int process_vfork(void)
{
	int status;
	pid_t pid;

	close(make("f", 1009));
	pid = vfork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "exec cp --reflink=never f g", NULL);
		_exit(97);
	}
	waitpid(pid, &status, 0);
	saw_by(pid, "f", "read", "read", 0, 1009, 1009, 1);
	saw_by(pid, "g", "write", "write", 0, 1009, 1009, 1);
	return WEXITSTATUS(status);
}

static int cloned(void *arg)
{
	(void)arg;
	must(pwrite(given, buffer, 211, 0) == 211, "pwrite");
	return 0;
}

static int process_clone(void)
{
	/* shared descriptors and working directory, but a separate process */
	char *stack =
		mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	given = make("f", 0);
	pid = clone(cloned, stack + (1 << 16), CLONE_FILES | CLONE_FS | SIGCHLD, NULL);
	must(pid > 0 && waitpid(pid, &status, 0) == pid, "clone");
	saw_by(pid, "f", "write", "write", 0, 211, 211, 1);
	must(pwrite(given, buffer, 101, 1009) == 101, "pwrite");
	saw("f", "write", "write", 1009, 1110, 101, 1);
	return 0;
}

static int process_killed(void)
{
	int status, ready[2];
	pid_t pid;
	char byte;

	must(!pipe(ready), "pipe");
	pid = fork();
	if (!pid) {
		int fd = open("f", O_WRONLY | O_CREAT, 0644);

		for (int i = 0; i < 11; i++)
			must(write(fd, buffer, 503) == 503, "write");
		must(write(ready[1], "x", 1) == 1, "write");
		pause();
	}
	must(read(ready[0], &byte, 1) == 1 && !kill(pid, SIGKILL), "kill");
	waitpid(pid, &status, 0);
	saw_by(pid, "f", "write", "write", 0, 11 * 503, 11 * 503, 11);
	return 0;
}

static int process_exec_chain(void)
{
	int status;
	pid_t pid;

	close(make("f", 2003));
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c",
		      "exec sh -c 'exec sh -c \"exec cp --reflink=never f g\"'", NULL);
		_exit(97);
	}
	waitpid(pid, &status, 0);
	saw_by(pid, "g", "write", "write", 0, 2003, 2003, 1);
	saw_by(pid, "f", "read", "read", 0, 2003, 2003, 1);
	return WEXITSTATUS(status);
}

static int process_daemon(void)
{
	pid_t pid = fork();
	int ready[2];
	char byte;

	if (!pid) {
		/* its parent ends at once, the first process adopts it */
		must(!pipe(ready), "pipe");
		pid = fork();
		if (!pid) {
			setsid();
			usleep(50000);
			int fd = open("f", O_WRONLY | O_CREAT, 0644);

			must(write(fd, buffer, 607) == 607, "write");
			saw("f", "write", "write", 0, 607, 607, 1);
			_exit(0);
		}
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	(void)byte;
	return 0;
}

const struct workload process_cases[] = {
	{"process_fork", process_fork},
	{"process_vfork", process_vfork},
	{"process_clone", process_clone},
	{"process_killed", process_killed},
	{"process_exec_chain", process_exec_chain},
	{"process_daemon", process_daemon},
	{0},
};
