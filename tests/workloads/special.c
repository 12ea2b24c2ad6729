// SPDX-License-Identifier: Apache-2.0
/* 32-bit calls, changed roots and mounts; the latter need root. */
#include "workload.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

static char buffer[65536];

#ifdef __x86_64__
static long call32(long nr, long a, long b, long c, long d, long e)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

static int special_32bit(void)
{
	char *low = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fd;

	must(low != MAP_FAILED, "mmap");
	strcpy(low, "f");
	fd = (int)call32(5, (long)low, O_RDWR | O_CREAT, 0644, 0, 0); /* open */
	if (fd < 0)
		return SKIPPED; /* no 32-bit calls in this kernel */
	must(call32(4, fd, (long)low, 1009, 0, 0) == 1009, "write");
	saw("f", "write", "write", 0, 1009, 1009, 1);
	must(call32(180, fd, (long)low, 101, 503, 0) == 101, "pread64");
	saw("f", "read", "read", 503, 604, 101, 1);
	must(call32(6, fd, 0, 0, 0, 0) == 0, "close");
	return 0;
}
#else
static int special_32bit(void)
{
	return SKIPPED;
}
#endif

static int special_chroot(void)
{
	must(!mkdir("root", 0755) && !mkdir("root/d", 0755), "mkdir");
	if (chroot("root") || chdir("/d"))
		return SKIPPED;
	int fd = open("/d/f", O_WRONLY | O_CREAT, 0644);

	must(write(fd, buffer, 307) == 307, "write");
	saw("root/d/f", "write", "write", 0, 307, 307, 1);
	must(!rename("/d/f", "/d/g"), "rename");
	named("rename", "root/d/f", "root/d/g");
	return 0;
}

static int private_mounts(void)
{
	return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int special_bind(void)
{
	must(!mkdir("a", 0755) && !mkdir("b", 0755), "mkdir");
	if (private_mounts() || mount("a", "b", NULL, MS_BIND, NULL))
		return SKIPPED;
	close(make("b/f", 1009));
	int fd = open("a/f", O_RDONLY);

	must(read(fd, buffer, 101) == 101, "read");
	saw("a/f", "read", "read", 0, 101, 101, 1);
	fact("same", "a/f", "b/f");
	return 0;
}

static int special_overlay(void)
{
	static const char *const dirs[] = {"base", "base/lower", "base/upper", "base/work",
					   "merged"};

	must(!mkdir("base", 0755), "mkdir");
	/* the upper layer of overlayfs needs a file system that supports it */
	if (private_mounts() || mount("none", "base", "tmpfs", 0, NULL))
		return SKIPPED;
	for (size_t i = 1; i < sizeof(dirs) / sizeof(*dirs); i++)
		must(!mkdir(dirs[i], 0755), dirs[i]);
	close(make("base/lower/f", 2003));
	if (mount("none", "merged", "overlay", 0,
		  "lowerdir=base/lower,upperdir=base/upper,workdir=base/work"))
		return SKIPPED;
	int fd = open("merged/f", O_RDONLY);

	must(read(fd, buffer, 503) == 503, "read");
	saw("merged/f", "read", "read", 0, 503, 503, 1);
	close(make("merged/g", 701));
	must(!rename("merged/g", "merged/h"), "rename");
	named("rename", "merged/g", "merged/h");
	fact("any_name", "merged/h", NULL);
	return 0;
}

static int special_tmpfs(void)
{
	must(!mkdir("t", 0755), "mkdir");
	if (private_mounts() || mount("none", "t", "tmpfs", 0, NULL))
		return SKIPPED;
	int fd = make("t/f", 50021);

	must(pread(fd, buffer, 1009, 30011) == 1009, "pread");
	saw("t/f", "read", "read", 30011, 31020, 1009, 1);
	return 0;
}

const struct workload special_cases[] = {
	{"special_32bit", special_32bit}, {"special_chroot", special_chroot},
	{"special_bind", special_bind},	  {"special_overlay", special_overlay},
	{"special_tmpfs", special_tmpfs}, {0},
};
