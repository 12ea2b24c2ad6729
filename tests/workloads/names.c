// SPDX-License-Identifier: Apache-2.0
/* Files whose names change. */
#include "workload.h"
#include <sys/stat.h>
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static char buffer[65536];

static void read_some(const char *path, long n)
{
	int fd = open(path, O_RDONLY);

	must(fd >= 0 && read(fd, buffer, (size_t)n) == n, path);
	saw(path, "read", "read", 0, n, n, 1);
	close(fd);
}

static int name_rename_chain(void)
{
	close(make("a", 1009));
	must(!rename("a", "b") && !rename("b", "c"), "rename");
	named("rename", "a", "b");
	named("rename", "b", "c");
	read_some("c", 101);
	fact("same", "a", "c");
	return 0;
}

static int name_replace(void)
{
	close(make("old", 503));
	close(make("new", 1009));
	must(!rename("new", "old"), "rename");
	named("rename", "new", "old");
	read_some("old", 107);
	fact("deleted_first", "old", NULL); /* the file that was first called old */
	return 0;
}

static int name_exchange(void)
{
	close(make("a", 503));
	close(make("b", 1009));
	if (renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE))
		return SKIPPED;
	named("exchange", "a", "b");
	read_some("a", 701); /* only the longer one has this many bytes */
	return 0;
}

static int name_link_unlink(void)
{
	close(make("a", 1009));
	must(!link("a", "b") && !unlink("a"), "link, unlink");
	named("link", "a", "b");
	named("unlink", "a", NULL);
	read_some("b", 103);
	fact("same", "a", "b");
	fact("kept", "b", NULL);
	return 0;
}

static int name_unlink(void)
{
	close(make("a", 1009));
	must(!unlink("a"), "unlink");
	named("unlink", "a", NULL);
	fact("deleted", "a", NULL);
	return 0;
}

static int name_unlink_open(void)
{
	int fd = make("a", 1009);

	must(!unlink("a"), "unlink");
	named("unlink", "a", NULL);
	must(pwrite(fd, buffer, 211, 2003) == 211, "pwrite");
	saw("a", "write", "write", 2003, 2214, 211, 1);
	fact("deleted", "a", NULL);
	return 0;
}

static int name_symlink(void)
{
	close(make("a", 1009));
	must(!symlink("a", "s"), "symlink");
	named("symlink", "s", "a");
	int fd = open("s", O_RDONLY);

	must(read(fd, buffer, 109) == 109, "read");
	saw("a", "read", "read", 0, 109, 109, 1); /* the kernel names the file, not the link */
	return 0;
}

static int name_directory(void)
{
	must(!mkdir("d", 0755), "mkdir");
	named("mkdir", "d", NULL);
	close(make("d/x", 1009));
	must(!rename("d", "e"), "rename");
	named("rename", "d", "e");
	read_some("e/x", 113);
	fact("same", "d/x", "e/x");
	must(!unlink("e/x") && !rmdir("e"), "unlink, rmdir");
	named("unlink", "e/x", NULL);
	named("rmdir", "e", NULL);
	fact("deleted", "d/x", NULL);
	return 0;
}

static int name_at(void)
{
	int dir;

	must(!mkdir("d", 0755) && !mkdir("d/deep", 0755), "mkdir");
	named("mkdir", "d", NULL);
	named("mkdir", "d/deep", NULL);
	dir = open("d", O_RDONLY | O_DIRECTORY);
	int fd = openat(dir, "x", O_WRONLY | O_CREAT, 0644);

	must(write(fd, buffer, 211) == 211, "write");
	saw("d/x", "write", "write", 0, 211, 211, 1);
	must(!renameat(dir, "x", dir, "deep/../y"), "renameat");
	named("rename", "d/x", "d/y");
	must(!unlinkat(dir, "./y", 0), "unlinkat");
	named("unlink", "d/y", NULL);
	fact("deleted", "d/x", NULL);
	return 0;
}

static int name_tmpfile(void)
{
	int fd = open(".", O_TMPFILE | O_RDWR, 0644);
	char link[64];

	if (fd < 0)
		return SKIPPED;
	must(write(fd, buffer, 401) == 401, "write");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	must(!linkat(AT_FDCWD, link, AT_FDCWD, "named", AT_SYMLINK_FOLLOW), "linkat");
	close(fd);
	read_some("named", 401);
	fact("written", "named", "401");
	fact("created", "named", NULL);
	return 0;
}

static int name_hostile(void)
{
	static const char *const names[] = {"a b",	"new\nline", "qu'o\"te", "$(x)",
					    "\x1b[31m", "\xff\xfe",  "*?",	 "-rf"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		close(make(names[i], 101));
		read_some(names[i], 31);
	}
	return 0;
}

/* 80 levels and close to 4,096 bytes; created in steps, as no call accepts so long a path. */
static int name_deep(void)
{
	char part[50], path[4096] = "";

	memset(part, 'd', 37);
	part[37] = 0;
	for (int i = 0; i < 79; i++) {
		must(!mkdir(part, 0755) && !chdir(part), "mkdir");
		strcat(path, part);
		named("mkdir", path, NULL);
		strcat(path, "/");
	}
	int fd = open("f", O_WRONLY | O_CREAT, 0644);

	must(write(fd, buffer, 307) == 307, "write");
	strcat(path, "f");
	saw(path, "write", "write", 0, 307, 307, 1);
	return 0;
}

static int name_inode_reuse(void)
{
	for (int i = 0; i < 11; i++) {
		close(make("f", (size_t)(101 + i)));
		must(!unlink("f"), "unlink");
	}
	fact("distinct", "f", "11");
	return 0;
}

const struct workload name_cases[] = {
	{"name_rename_chain", name_rename_chain},
	{"name_replace", name_replace},
	{"name_exchange", name_exchange},
	{"name_link_unlink", name_link_unlink},
	{"name_unlink", name_unlink},
	{"name_unlink_open", name_unlink_open},
	{"name_symlink", name_symlink},
	{"name_directory", name_directory},
	{"name_at", name_at},
	{"name_tmpfile", name_tmpfile},
	{"name_hostile", name_hostile},
	{"name_deep", name_deep},
	{"name_inode_reuse", name_inode_reuse},
	{0},
};
