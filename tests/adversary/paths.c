// SPDX-License-Identifier: Apache-2.0
/* Names: special files, mount namespaces, very long and deep paths, links by descriptor. */
#include "../workloads/workload.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

static char buffer[1 << 16];

/* mknod creates regular files too. */
static int paths_mknod(void)
{
	int fd;

	must(!mknod("f", S_IFREG | 0644, 0), "mknod");
	fd = open("f", O_WRONLY);
	must(write(fd, buffer, 701) == 701, "write");
	saw("f", "write", "write", 0, 701, 701, 1);
	fact("unfollowed", "f", NULL); /* its creator */
	return 0;
}

static int paths_longest_name(void)
{
	char name[256], other[256];
	int fd;

	memset(name, 'n', 255);
	memset(other, 0xff, 255);
	name[255] = other[255] = 0;
	fd = make(name, 307);
	close(fd);
	must(!rename(name, other), "rename");
	named("rename", name, other);
	fd = open(other, O_RDONLY);
	must(read(fd, buffer, 307) == 307, "read");
	saw(other, "read", "read", 0, 307, 307, 1);
	return 0;
}

static int paths_link_by_descriptor(void)
{
	char path[64];
	int fd = make("f", 409), dir = open(".", O_RDONLY | O_DIRECTORY);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(!linkat(AT_FDCWD, path, dir, "g", AT_SYMLINK_FOLLOW), "linkat");
	if (linkat(fd, "", dir, "h", AT_EMPTY_PATH))
		return SKIPPED;
	fact("same", "f", "g");
	fact("same", "f", "h");
	fd = open("h", O_RDONLY);
	must(read(fd, buffer, 100) == 100, "read");
	saw("h", "read", "read", 0, 100, 100, 1);
	return 0;
}

static int paths_no_replace(void)
{
	int fd = make("f", 101), other = make("g", 103);

	close(fd);
	close(other);
	must(renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_NOREPLACE) && errno == EEXIST, "kept");
	fd = open("f", O_RDONLY);
	must(read(fd, buffer, 101) == 101, "read");
	saw("f", "read", "read", 0, 101, 101, 1);
	must(!renameat2(AT_FDCWD, "f", AT_FDCWD, "h", RENAME_NOREPLACE), "renamed");
	named("rename", "f", "h");
	return 0;
}

/* An open file whose name now refers to another file. */
static int paths_replaced_while_open(void)
{
	int old = make("f", 1009), new;

	must(!unlink("f"), "unlink");
	new = make("f", 503);
	must(pread(old, buffer, 1009, 0) == 1009, "read the old one");
	saw("f", "read", "read", 0, 1009, 1009, 1);
	must(pread(new, buffer, 503, 0) == 503, "read the new one");
	saw("f", "read", "read", 0, 503, 503, 1);
	fact("distinct", "f", "2");
	return 0;
}

/* A tmpfs that only this process mounts, over a directory with files of the same names. */
static int paths_own_mount(void)
{
	int fd;

	must(!mkdir("t", 0755), "mkdir");
	fd = make("t/f", 1009);
	close(fd);
	fd = make("t/kept", 11);
	close(fd);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "t", "tmpfs", 0, NULL))
		return SKIPPED;
	fd = make("t/f", 503);
	close(fd);
	must(!rename("t/f", "t/g"), "rename");
	named("rename", "t/f", "t/g");
	fd = open("t/g", O_RDONLY);
	must(read(fd, buffer, 503) == 503, "read");
	saw("t/g", "read", "read", 0, 503, 503, 1);
	fd = make("t/kept", 13);
	close(fd);
	must(!unlink("t/kept"), "unlink");
	fact("distinct", "t/kept", "2");
	fact("deleted", "t/kept", "01");
	return 0;
}

static int paths_bind_in_own_mount(void)
{
	int fd;

	must(!mkdir("a", 0755) && !mkdir("b", 0755), "mkdir");
	fd = make("a/f", 1009);
	close(fd);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("a", "b", NULL, MS_BIND, NULL))
		return SKIPPED;
	fd = open("b/f", O_RDONLY);
	must(read(fd, buffer, 503) == 503, "read");
	saw("b/f", "read", "read", 0, 503, 503, 1);
	must(!rename("b/f", "b/g"), "rename");
	fact("same", "a/f", "b/g");
	return 0;
}

/* Nested deeper than a path can express. */
static int paths_too_deep(void)
{
	char name[201];
	int fd, dir = open(".", O_RDONLY | O_DIRECTORY), next;

	memset(name, 'd', 200);
	name[200] = 0;
	for (int i = 0; i < 30; i++) {
		must(!mkdirat(dir, name, 0755), "mkdirat");
		next = openat(dir, name, O_RDONLY | O_DIRECTORY);
		must(next >= 0, "openat");
		close(dir);
		dir = next;
	}
	fd = openat(dir, "f", O_RDWR | O_CREAT, 0644);
	must(fd >= 0 && write(fd, buffer, 211) == 211, "write");
	fact("cut", "f", NULL);
	return 0;
}

/* A FIFO transfers bytes between processes: it has no ranges. */
static int paths_fifo(void)
{
	pid_t pid;
	int fd;

	must(!mkfifo("p", 0644), "mkfifo");
	pid = fork();
	if (!pid) {
		fd = open("p", O_WRONLY);
		must(write(fd, buffer, 1009) == 1009, "write");
		_exit(0);
	}
	fd = open("p", O_RDONLY);
	for (long left = 1009; left;)
		left -= read(fd, buffer, (size_t)left);
	must(waitpid(pid, NULL, 0) == pid && !unlink("p"), "unlink");
	return 0;
}

const struct workload path_cases[] = {
	{"paths_mknod", paths_mknod},
	{"paths_longest_name", paths_longest_name},
	{"paths_link_by_descriptor", paths_link_by_descriptor},
	{"paths_no_replace", paths_no_replace},
	{"paths_replaced_while_open", paths_replaced_while_open},
	{"paths_own_mount", paths_own_mount},
	{"paths_bind_in_own_mount", paths_bind_in_own_mount},
	{"paths_too_deep", paths_too_deep},
	{"paths_fifo", paths_fifo},
	{0},
};
