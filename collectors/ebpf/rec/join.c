// SPDX-License-Identifier: Apache-2.0
/*
 * tracehint-join SOCKET MISSED -- COMMAND [ARGUMENT]...
 *
 * Asks this node's recorder to follow this process, then executes COMMAND, which always runs:
 * without a recorder, a line with the time, the process and the command is appended to MISSED,
 * which the next recorder or `tracehint merge` counts as a loss. Needs no privileges.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "standard.h"

#define MARK "TRACEHINT_RECORDING" /* collectors/begin.py: prevents a nested recording */
#ifndef PATIENCE_S
#define PATIENCE_S 10 /* a busy recorder answers within milliseconds */
#endif
#ifndef LOCK_PATIENCE_S
#define LOCK_PATIENCE_S 60 /* a starting recorder holds its lock for one or a few seconds */
#endif
#define RETRY_NS 20000000

static int connect_recorder(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = PATIENCE_S};
	struct ucred peer = {};
	struct stat st;
	socklen_t size = sizeof(peer);

	if (lstat(path, &st) || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return -1;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(to.sun_path)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	strcpy(to.sun_path, path);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.uid != geteuid()) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * Open a plain file of this user, without blocking: the directories may be shared, and anything
 * else is rejected.
 */
static int open_own(const char *name, int flags)
{
	int fd = open(name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink <= 1)
		return fd;
	close(fd);
	errno = EPERM;
	return -1;
}

#define LOCK_TRIES (LOCK_PATIENCE_S * (1000000000LL / RETRY_NS))

/* Lock the file, shared. A recorder that ends removes it and the next one creates it: try again. */
static int take_lock(const char *name)
{
	const struct timespec pause = {.tv_nsec = RETRY_NS};

	for (long long i = 0; i < LOCK_TRIES; i++) {
		int lock = open_own(name, O_RDONLY);
		struct stat held, named;

		if (lock < 0)
			return -1;
		if (!flock(lock, LOCK_SH | LOCK_NB)) {
			if (!fstat(lock, &held) && !lstat(name, &named) &&
			    held.st_ino == named.st_ino && held.st_dev == named.st_dev)
				return lock;
		} else if (errno != EWOULDBLOCK && errno != EINTR) {
			close(lock);
			return -1;
		} else {
			nanosleep(&pause, NULL);
		}
		close(lock);
	}
	return -1;
}

/* Whether a recorder now follows this process. The lock file is SOCKET.lock. */
static int ask_recorder(const char *path)
{
	char name[4096 + 8], answer = 0;
	int lock, fd;

	snprintf(name, sizeof(name), "%s.lock", path);
	lock = take_lock(name);
	if (lock < 0)
		return 0;
	fd = connect_recorder(path);
	if (fd >= 0) {
		if (send(fd, "j", 1, MSG_NOSIGNAL) != 1 || recv(fd, &answer, 1, 0) != 1)
			answer = 0;
		close(fd);
	}
	close(lock);
	return answer == 'y';
}

/* One write per line, so that lines of several processes do not mix. */
static void note_missed(const char *path, const char *command)
{
	char line[256];
	int fd = open_own(path, O_WRONLY | O_CREAT | O_APPEND);
	int n = snprintf(line, sizeof(line), "%lld %d %.200s", (long long)time(NULL), (int)getpid(),
			 command);

	for (int i = 0; i < n && i < (int)sizeof(line) - 1; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = '?';
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n] = '\n';
	if (fd < 0 || write(fd, line, (size_t)n + 1) != n + 1)
		fputs("tracehint-join: not followed, and this could not be recorded\n", stderr);
	if (fd >= 0)
		close(fd);
}

static void set_mark(void)
{
	char boot[64] = "", text[160];
	unsigned long long space = 0;
	char link[64];
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);

	if (f) {
		if (!fgets(boot, sizeof(boot), f))
			*boot = 0;
		fclose(f);
	}
	boot[strcspn(boot, "\n")] = 0;
	link[n > 0 ? n : 0] = 0;
	sscanf(link, "pid:[%llu]", &space);
	snprintf(text, sizeof(text), "%s:%llu:%d", boot, space, (int)getpid());
	setenv(MARK, text, 1);
}

int main(int argc, char **argv)
{
	int error;

	standard_fds_hold(); /* if this fails, later opens fail too */
	if (argc < 5 || strcmp(argv[3], "--")) {
		fputs("usage: tracehint-join SOCKET MISSED -- COMMAND [ARGUMENT]...\n", stderr);
		return 125;
	}
	if (ask_recorder(argv[1])) {
		set_mark();
	} else {
		/* neither a limit of file sizes nor a closed standard error may end the command */
		void (*size)(int) = signal(SIGXFSZ, SIG_IGN),
		     (*pipe)(int) = signal(SIGPIPE, SIG_IGN);

		note_missed(argv[2], argv[4]);
		signal(SIGXFSZ, size);
		signal(SIGPIPE, pipe);
	}
	execvp(argv[4], argv + 4);
	error = errno;
	fprintf(stderr, "tracehint-join: %s: %s\n", argv[4], strerror(error));
	return error == ENOENT ? 127 : 126;
}
