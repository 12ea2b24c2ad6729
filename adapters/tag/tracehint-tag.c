// SPDX-License-Identifier: Apache-2.0
/*
 * tracehint-tag: set the hints of one task's files, before the task runs.
 *
 *   tracehint-tag set TABLE TASK               before the task
 *   tracehint-tag clean TABLE TASK             after it: remove what it did not use
 *   tracehint-tag run TABLE TASK COMMAND...    both, around a command
 *
 * TABLE is written by `tracehint emit --workflow-engine` (adapters/engines/tag_table.py): a line
 * "tracehint-tags 1 <number of tasks>", an index of "<offset> <length>" lines of fixed width, and
 * NUL-ended records kind, path, attribute, value in hexadecimal (a plain name for mfs:sclass). Kinds: D directory, F file,
 * C file to be made, K file to be made and kept (several tasks write it). Directories are never made:
 * a task that says `mkdir out` would fail. Paths are below the working directory and are opened so
 * that no link and no ".." can lead out of it.
 *
 * A hint is advice: whatever fails here is one line on standard error and never stops the task.
 * A file that was made here gets the time stamp MARK, so that `clean` can tell whether anybody has
 * touched it, and so that it looks older than any input.
 *
 * Exit status of set: 0 fine, 3 fine and `clean` has something to look at.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HEADER_LEN 28
#define INDEX_LEN 24
#define MAX_VALUE 4096
#define MARK 1 /* seconds since the epoch */
#define MAX_BATCH 64
#define MAX_NAME 256
#define MFS_CLASS "mfs:sclass"
#define EXIT_MADE 3

struct record {
	const char *kind, *path, *name, *value;
};

struct table {
	char *data;
	size_t size, at, end;
};

static bool complained;

static void complain(const char *what, int error)
{
	if (!complained)
		fprintf(stderr, "tracehint-tag: %s: %s\n", what, strerror(error));
	complained = true;
}

/* Files that get the same storage class of MooseFS: one call of its tool sets them all. */
struct batch {
	const char *value;
	int fds[MAX_BATCH];
	int count;
};

/* Map the table and find the records of one task. */
static int table_open(struct table *t, const char *path, const char *task)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || st.st_size < HEADER_LEN) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	t->size = st.st_size;
	t->data = mmap(NULL, t->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (t->data == MAP_FAILED)
		return -1;

	unsigned long tasks, number;
	unsigned long long offset, length;
	char line[INDEX_LEN + 1] = {0}, header[HEADER_LEN + 1] = {0}, *rest;

	memcpy(header, t->data, HEADER_LEN);
	number = strtoul(task, &rest, 10);
	errno = EINVAL;
	if (sscanf(header, "tracehint-tags 1 %lu", &tasks) != 1 || *rest || number >= tasks)
		return -1;
	size_t entry = HEADER_LEN + (size_t)number * INDEX_LEN;
	if (entry + INDEX_LEN > t->size)
		return -1;
	memcpy(line, t->data + entry, INDEX_LEN);
	if (sscanf(line, "%llu %llu", &offset, &length) != 2)
		return -1;
	if (offset > t->size || length > t->size - offset)
		return -1;
	t->at = offset;
	t->end = offset + length;
	return 0;
}

static const char *field(struct table *t)
{
	const char *start = t->data + t->at;
	const char *nul = memchr(start, 0, t->end - t->at);

	if (!nul)
		return NULL;
	t->at = nul - t->data + 1;
	return start;
}

static bool next(struct table *t, struct record *r)
{
	if (t->at >= t->end)
		return false;
	r->kind = field(t);
	r->path = r->kind ? field(t) : NULL;
	r->name = r->path ? field(t) : NULL;
	r->value = r->name ? field(t) : NULL;
	return r->value != NULL;
}

/* Without openat2: every component by itself, no link followed. */
static int open_by_hand(const char *path, int flags, mode_t mode)
{
	char part[256];
	int here = AT_FDCWD;

	for (;;) {
		size_t n = strcspn(path, "/");
		bool last = path[n] == 0;
		int fd;

		if (n == 0 || n >= sizeof(part) || (n == 2 && !memcmp(path, "..", 2))) {
			errno = EXDEV;
			fd = -1;
		} else {
			memcpy(part, path, n);
			part[n] = 0;
			fd = openat(here, part,
				    last ? flags | O_NOFOLLOW
					 : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
				    last ? mode : 0);
		}
		int error = errno;
		if (here != AT_FDCWD)
			close(here);
		errno = error;
		if (fd < 0 || last)
			return fd;
		here = fd;
		path += n + 1;
	}
}

static int open_beneath(const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = flags,
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	int fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open_by_hand(path, flags, mode);
	return fd;
}

/* The directory that holds `path`; *name is its last component. */
static int open_parent(const char *path, const char **name)
{
	char folder[4096];
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 1;

	*name = slash ? slash + 1 : path;
	if (n >= sizeof(folder)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(folder, slash ? path : ".", n);
	folder[n] = 0;
	return open_beneath(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

/* Make an empty file with the time stamp MARK; one that is there already is fine. */
static int make_file(const char *path)
{
	const char *name;
	int folder = open_parent(path, &name);

	if (folder < 0)
		return -1;
	int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	close(folder);
	if (fd >= 0) {
		struct timespec times[2] = {{.tv_sec = MARK}, {.tv_sec = MARK}};
		futimens(fd, times);
	}
	return fd;
}

static int open_target(const struct record *r)
{
	int fd = open_beneath(r->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);

	if (fd < 0 && errno == ENOENT && (r->kind[0] == 'C' || r->kind[0] == 'K'))
		fd = make_file(r->path);
	return fd;
}

static int decode(const char *hex, unsigned char *out, size_t *length)
{
	*length = 0;
	for (hex += 2; hex[0] && hex[1]; hex += 2) {
		unsigned int byte;

		if (*length == MAX_VALUE || sscanf(hex, "%2x", &byte) != 1)
			return -1;
		out[(*length)++] = byte;
	}
	return *hex ? -1 : 0;
}

/* The name of a storage class or pool, with the short name of this host in the place of @host. */
static int class_name(const char *value, char *out, size_t size)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	const char *mark = strstr(value, "@host");
	struct utsname system;
	int n;

	if (mark && uname(&system) == 0) {
		system.nodename[strcspn(system.nodename, ".")] = 0;
		n = snprintf(out, size, "%.*s%s%s", (int)(mark - value), value, system.nodename,
			     mark + strlen("@host"));
	} else {
		n = snprintf(out, size, "%s", value);
	}
	return n > 0 && (size_t)n < size && out[0] != '-' && !out[strspn(out, plain)] ? 0 : -1;
}

/* A value in hexadecimal; or a plain name with @host in it, for a pool of Ceph. */
static int value_of(const struct record *r, unsigned char *out, size_t *length)
{
	if (!strncmp(r->value, "0x", 2))
		return decode(r->value, out, length);
	if (strncmp(r->name, "ceph.", 5) || class_name(r->value, (char *)out, MAX_NAME) < 0)
		return -1;
	*length = strlen((char *)out);
	return 0;
}

static void set_one(int fd, const struct record *r)
{
	unsigned char value[MAX_VALUE], now[MAX_VALUE];
	size_t length;

	if (!strncasecmp(r->name, "security.", 9) || !strncasecmp(r->name, "system.", 7)) {
		complain("refused an attribute", EPERM);
	} else if (value_of(r, value, &length) < 0) {
		complain("bad value in the table", EINVAL);
	} else {
		ssize_t had = fgetxattr(fd, r->name, now, sizeof(now));

		if (had == (ssize_t)length && !memcmp(now, value, length))
			return;
		if (fsetxattr(fd, r->name, value, length, 0) < 0)
			complain("cannot set an attribute", errno);
	}
}

/* MooseFS is set by its own tool. It takes paths: the open files are named through /proc. */
static void set_class(struct batch *b)
{
	char name[MAX_NAME], paths[MAX_BATCH][32], *words[MAX_BATCH + 3] = {"mfssetsclass", name};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status, error = EINVAL;

	if (b->count && class_name(b->value, name, sizeof(name)) == 0) {
		for (int i = 0; i < b->count; i++) {
			snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", b->fds[i]);
			fcntl(b->fds[i], F_SETFD, 0);
			words[i + 2] = paths[i];
		}
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
		error = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
		posix_spawn_file_actions_destroy(&actions);
		if (!error && (waitpid(pid, &status, 0) != pid || status))
			error = EIO;
	}
	if (b->count && error)
		complain("cannot set a storage class", error);
	while (b->count)
		close(b->fds[--b->count]);
}

static void add_to_class(struct batch *b, int fd, const char *value)
{
	if (b->count == MAX_BATCH || (b->count && strcmp(b->value, value)))
		set_class(b);
	b->value = value;
	fd = dup(fd);
	if (fd >= 0)
		b->fds[b->count++] = fd;
}

static int tag(struct table t)
{
	struct record r;
	const char *opened = NULL;
	struct batch batch = {0};
	struct stat st;
	bool made = false;
	int fd = -1;

	while (next(&t, &r)) {
		if (!opened || strcmp(opened, r.path)) {
			if (fd >= 0)
				close(fd);
			fd = open_target(&r);
			opened = r.path;
			if (fd < 0 && errno != ENOENT)
				complain("cannot open a file to tag it", errno);
			if (fd >= 0 &&
			    (fstat(fd, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))) {
				close(fd);
				fd = -1;
			}
			made |= fd >= 0 && r.kind[0] == 'C' && st.st_size == 0;
		}
		if (fd >= 0 && !strcmp(r.name, MFS_CLASS))
			add_to_class(&batch, fd, r.value);
		else if (fd >= 0)
			set_one(fd, &r);
	}
	set_class(&batch);
	if (fd >= 0)
		close(fd);
	return made ? EXIT_MADE : 0;
}

/* Remove files that were made here and that nobody touched: the task did not write them. */
static void clean(struct table t)
{
	struct record r;
	struct stat st;
	const char *name;

	while (next(&t, &r)) {
		if (r.kind[0] != 'C')
			continue;
		int folder = open_parent(r.path, &name);

		if (folder < 0)
			continue;
		if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
		    st.st_size == 0 && st.st_mtim.tv_sec == MARK && st.st_mtim.tv_nsec == 0)
			unlinkat(folder, name, 0);
		close(folder);
	}
}

static volatile sig_atomic_t child;

static void pass_on(int number)
{
	if (child > 0)
		kill(child, number);
}

/* Run the command; its signals and its end are ours. */
static int run(char **command)
{
	int status, numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
	sigset_t block, before;

	sigfillset(&block);
	sigprocmask(SIG_BLOCK, &block, &before);
	pid_t pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		execvp(command[0], command);
		int code = errno == ENOENT ? 127 : 126;
		fprintf(stderr, "tracehint-tag: %s: %s\n", command[0], strerror(errno));
		_exit(code);
	}
	if (pid < 0) {
		perror("tracehint-tag: fork");
		return 126;
	}
	child = pid;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		signal(numbers[i], pass_on);
	sigprocmask(SIG_SETMASK, &before, NULL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	child = 0;
	return status;
}

static int end_like(int status)
{
	if (!WIFSIGNALED(status))
		return WIFEXITED(status) ? WEXITSTATUS(status) : status;
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct table t = {0};
	int status = 0;
	bool runs = argc > 4 && !strcmp(argv[1], "run");

	if (argc < 4 || (!runs && argc != 4)) {
		fprintf(stderr, "usage: tracehint-tag set|clean TABLE TASK\n"
				"       tracehint-tag run TABLE TASK COMMAND...\n");
		return 2;
	}
	bool found = table_open(&t, argv[2], argv[3]) == 0;
	if (!found)
		complain("cannot use the table", errno);
	if (!strcmp(argv[1], "clean")) {
		if (found)
			clean(t);
		return 0;
	}
	if (found)
		status = tag(t);
	if (!runs)
		return status;
	if (status != EXIT_MADE) { /* nothing to clean up: become the command */
		execvp(argv[4], argv + 4);
		int code = errno == ENOENT ? 127 : 126;
		fprintf(stderr, "tracehint-tag: %s: %s\n", argv[4], strerror(errno));
		return code;
	}
	status = run(argv + 4);
	clean(t);
	return end_like(status);
}
