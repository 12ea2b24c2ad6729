// SPDX-License-Identifier: Apache-2.0
/*
 * Starts static programs with the library. No loader reads LD_PRELOAD for them, but the kernel
 * loads the interpreter that a program's headers name. So a copy is executed whose headers name
 * this library (bare.c runs then). It is stored next to the rule table, is made once per program
 * and run, and ends with the path of the original. If anything fails, the original is executed.
 */
#include <elf.h>
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "../trusted.h"
#include "bare.h"
#include "core.h"

#define MAX_COPY (256UL << 20)
#define MAX_PARTS 24
#define MAX_PATH 2048
#define AT_EMPTY_PATH 0x1000
#define X_OK 1
#define PT_GO_FLAGS 0x65041580 /* ignored by current kernels */
#ifndef PT_GNU_PROPERTY	       /* before glibc 2.32 */
#define PT_GNU_PROPERTY 0x6474e553
#endif

struct copy {
	char path[MAX_PATH];
	size_t length;
	int from;
	struct statx facts;
};

static bool add(struct copy *c, const char *text, size_t n)
{
	if (c->length + n + 1 > sizeof(c->path))
		return false;
	th_copy(c->path + c->length, text, n);
	c->length += n;
	c->path[c->length] = '\0';
	return true;
}

static bool add_number(struct copy *c, unsigned long number)
{
	char digits[17];

	for (int i = 15; i >= 0; i--, number >>= 4)
		digits[i] = "0123456789abcdef"[number & 15];
	digits[16] = '-';
	return add(c, digits, 17);
}

/* Set the path TABLE.programs/FILE-IDENTITY/NAME and create its directories. */
static bool name_copy(struct copy *c, const char *name)
{
	const struct statx *f = &c->facts;
	const char *table = th_carried(TH_TABLE);

	if (!table || !add(c, table, th_len(table)) || !add(c, ".programs", 9))
		return false;
	th_sys(__NR_mkdir, c->path, 0700);
	if (!add(c, "/", 1) ||
	    !add_number(c, (unsigned long)f->stx_dev_major << 32 | f->stx_dev_minor) ||
	    !add_number(c, f->stx_ino) || !add_number(c, f->stx_size) ||
	    !add_number(c, (unsigned long)f->stx_ctime.tv_sec) ||
	    !add_number(c, f->stx_ctime.tv_nsec))
		return false;
	th_sys(__NR_mkdir, c->path, 0700);
	return add(c, "/", 1) && add(c, name, th_len(name));
}

/* Return the index of a program header that can be overwritten, or -1. */
static int spare_part(const Elf64_Phdr *parts, unsigned int n)
{
	static const unsigned int spare[] = {PT_NOTE, PT_GO_FLAGS, PT_GNU_PROPERTY};
	int found = -1;

	for (unsigned int i = 0; i < n; i++)
		if (parts[i].p_type == PT_INTERP)
			return -1;
	for (unsigned int k = 0; k < 3 && found < 0; k++)
		for (unsigned int i = 0; i < n; i++)
			if (parts[i].p_type == spare[k])
				found = (int)i;
	return found;
}

/* The loader is a static program too, but it reads LD_PRELOAD. */
static bool is_loader(const char *name)
{
	return th_starts(name, "ld-") || th_starts(name, "ld.so") || th_starts(name, "ld64.");
}

static bool put_at(int fd, const void *bytes, size_t n, size_t at)
{
	return th_sys(__NR_pwrite64, fd, bytes, n, at) == (long)n;
}

/* Write the program's own path after that of the interpreter. */
static bool put_name(const struct copy *c, int to, size_t at)
{
	char name[TH_FD_NAME], true_path[1024];
	long n = th_sys(__NR_readlink, th_fd_name(name, c->from), true_path, sizeof(true_path) - 1);

	if (n <= 0 || n >= (long)sizeof(true_path) - 1 || *true_path != '/')
		return false;
	true_path[n] = '\0';
	return put_at(to, true_path, (size_t)n + 1, at);
}

static bool write_copy(const struct copy *c, int to, enum th_class class)
{
	const char *own = th_own_path();
	size_t size = c->facts.stx_size, done = 0, length = th_len(own) + 1;
	Elf64_Phdr parts[MAX_PARTS];
	Elf64_Ehdr head;

	if (th_sys(__NR_pread64, c->from, &head, sizeof(head), 0) != sizeof(head) ||
	    head.e_phentsize != sizeof(*parts) || head.e_phnum > MAX_PARTS ||
	    head.e_phoff != sizeof(head))
		return false;
	size_t bytes = head.e_phnum * sizeof(*parts);
	int spare = th_sys(__NR_pread64, c->from, parts, bytes, sizeof(head)) == (long)bytes
			    ? spare_part(parts, head.e_phnum)
			    : -1;

	if (spare < 0)
		return false;
	while (done < size) {
		long n = th_sys(__NR_sendfile, to, c->from, NULL, size - done);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	parts[spare] = (Elf64_Phdr){.p_type = PT_INTERP,
				    .p_flags = PF_R,
				    .p_offset = size,
				    .p_paddr = class,
				    .p_filesz = length,
				    .p_memsz = length,
				    .p_align = 1};
	return put_at(to, own, length, size) && put_name(c, to, size + length) &&
	       put_at(to, &parts[spare], sizeof(*parts),
		      sizeof(head) + (size_t)spare * sizeof(*parts));
}

/* Write to a temporary name first, so that other processes execute complete copies only. */
static bool make_copy(struct copy *c, enum th_class class)
{
	size_t length = c->length;
	char final[MAX_PATH];

	th_copy(final, c->path, length + 1);
	if (!add(c, ".", 1) || !add_number(c, (unsigned long)th_sys(__NR_gettid)))
		return false;
	int to = (int)th_sys(__NR_open, c->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);

	if (to < 0)
		return false;
	bool done = write_copy(c, to, class);

	th_sys(__NR_close, to);
	if (!done || th_failed(th_sys(__NR_rename, c->path, final))) {
		th_sys(__NR_unlink, c->path);
		return false;
	}
	th_copy(c->path, final, length + 1);
	c->length = length;
	return true;
}

/* Whether an executable copy exists that this user or root made. */
static bool is_made(const struct copy *c)
{
	long fd = th_open_trusted(c->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool made =
		!th_failed(fd) && !th_failed(th_sys(__NR_faccessat, TH_AT_FDCWD, c->path, X_OK));

	if (!th_failed(fd))
		th_sys(__NR_close, fd);
	return made;
}

static bool prepare(struct copy *c, const struct th_call *call, enum th_class class)
{
	bool at = call->nr == __NR_execveat;
	const char *path = (const char *)call->arg[at];
	char name[TH_FD_NAME], magic[4];

	c->length = 0;
	c->from = (int)th_sys(__NR_openat, at ? call->arg[0] : TH_AT_FDCWD, path,
			      O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (c->from < 0 || is_loader(th_base(path)) ||
	    th_sys(__NR_pread64, c->from, magic, 4, 0) != 4 || !th_same(magic, ELFMAG, 4) ||
	    th_failed(
		    th_sys(__NR_statx, c->from, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &c->facts)) ||
	    c->facts.stx_size > MAX_COPY ||
	    th_failed(th_sys(__NR_faccessat, TH_AT_FDCWD, th_fd_name(name, c->from), X_OK)) ||
	    !name_copy(c, th_base(path)))
		return false;
	return is_made(c) || make_copy(c, class);
}

__attribute__((noinline)) void th_exec_entered(const struct th_call *call, enum th_class class,
					       char *const *envp)
{
	bool at = call->nr == __NR_execveat;
	struct copy c;
	bool done = prepare(&c, call, class);

	if (c.from >= 0)
		th_sys(__NR_close, c.from);
	if (done)
		th_sys(__NR_execve, c.path, call->arg[at ? 2 : 1], envp);
}
