// SPDX-License-Identifier: Apache-2.0
/*
 * tracehint-tag script set|dry|undo [quiet]: executes a script of `tracehint emit` (adapters/
 * stores/driver.sh) below the working directory, with its table on standard input: records of five
 * NUL-terminated fields: kind (D directory, M directory to create, F file, C file to create), path,
 * attribute, value, remark. The first record is S, with the store as path and prefix as attribute.
 *
 * Exit status: 0 success, 1 something failed, 2 the journal cannot be used.
 */
#define _GNU_SOURCE
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_text(FILE *out, const char *text)
{
	for (; *text; text++)
		putc(*text >= ' ' && *text <= '~' ? *text : '?', out);
}

static void print_line(FILE *out, const char *verb, const char *path, const char *remark)
{
	fprintf(out, "%s ./", verb);
	print_text(out, path);
	fputs("  ", out);
	print_text(out, remark);
	putc('\n', out);
}

void say(const struct job *j, const char *verb, const char *path, const char *remark)
{
	if (!j->quiet)
		print_line(stdout, verb, path, remark);
}

void fail(struct job *j, const char *path, const char *why)
{
	j->failed = true;
	print_line(stderr, "FAILED:", path, why);
}

bool may_set(const char *name)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-";

	return *name && *name != '-' && !name[strspn(name, letters)] &&
	       strncasecmp(name, "security.", 9) && strncasecmp(name, "system.", 7);
}

static bool leads_out(const char *path)
{
	size_t n;

	for (const char *part = path; *path && *path != '/'; part += n + 1) {
		n = strcspn(part, "/");
		if (n == 2 && !memcmp(part, "..", 2))
			return true;
		if (!part[n])
			return false;
	}
	return true;
}

int open_checked(const char *path)
{
	struct stat st;
	int fd, error = 0;

	errno = EXDEV;
	if (leads_out(path))
		return -1;
	fd = open_beneath(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		error = errno;
	else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		error = EINVAL;
	else if (S_ISREG(st.st_mode) && st.st_nlink > 1 && geteuid() == 0)
		error = EMLINK;
	if (!error)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

const char *why_not(int error)
{
	switch (error) {
	case ELOOP:
	case EXDEV:
		return "refused: it leads out of the directory or through a symbolic link";
	case EINVAL:
		return "refused: neither a file nor a directory";
	case EMLINK:
		return "refused as root: the file has several hard links";
	default:
		return strerror(error);
	}
}

/* Append the journal line of a created file or directory; -1 and errno. */
static int add_made(struct job *j, const char *path, ino_t inode)
{
	static struct change c;

	c = (struct change){.op = "made", .inode = inode};
	snprintf(c.path, sizeof(c.path), "%s", path);
	return inode ? journal_add(&j->journal, &c) : -1;
}

/* Create missing directories above the path; with `all`, the path too. */
static int make_folders(struct job *j, const char *path, bool all)
{
	char way[MAX_PATH];

	for (size_t n = 0;; n++) {
		n += strcspn(path + n, "/");
		if (!path[n] && !all)
			return 0;
		snprintf(way, sizeof(way), "%.*s", (int)n, path);
		int fd = open_beneath(way, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		if (fd >= 0)
			close(fd);
		else if (errno != ENOENT ||
			 (add_made(j, way, make_folder(way)) < 0 && errno != EEXIST))
			return -1;
		if (!path[n])
			return 0;
	}
}

/* Open the target; create a missing one of kind M or C. -1: nothing more to do. */
static int open_target(struct job *j, const struct row *r)
{
	bool makes = r->kind[0] == 'M' || r->kind[0] == 'C';
	int fd = open_checked(r->path);

	if (fd < 0 && errno == ENOENT && !makes) {
		say(j, "does not exist:", r->path, r->remark);
		return -1;
	}
	if (fd < 0 && errno == ENOENT && j->dry) {
		say(j, "create", r->path, "");
		say(j, "set", r->path, r->remark);
		return -1;
	}
	if (fd < 0 && errno == ENOENT) {
		int made = make_folders(j, r->path, r->kind[0] == 'M');

		if (!made && r->kind[0] == 'C')
			made = add_made(j, r->path, make_empty(r->path));
		if (!made || errno == EEXIST)
			fd = open_checked(r->path);
	}
	if (fd < 0)
		fail(j, r->path, why_not(errno));
	return fd;
}

/* Append the journal line of a change, before it is made; -1 and errno. */
static int add_set(struct job *j, const struct row *r, const struct value *was,
		   const struct value *want)
{
	static struct change c;

	c = (struct change){.op = "set", .old = *was, .new = *want};
	snprintf(c.path, sizeof(c.path), "%s", r->path);
	snprintf(c.name, sizeof(c.name), "%s", r->name);
	return journal_add(&j->journal, &c);
}

/* Append the session line before the changes of a store; the prefix is its old value. */
static void add_session(struct job *j, const struct row *r)
{
	static struct change c;

	c = (struct change){.op = "session"};
	snprintf(c.path, sizeof(c.path), "%s", r->path);
	c.old.set = *r->name;
	c.old.length = strlen(r->name);
	memcpy(c.old.bytes, r->name, c.old.length);
	if (!j->dry && journal_add(&j->journal, &c) < 0)
		fail(j, "", strerror(errno));
}

static void apply_row(struct job *j, const struct row *r)
{
	struct value want, now;

	if (!may_set(r->name) || value_of(r->name, r->value, &want) < 0) {
		fail(j, r->path, "refused: not an attribute and value of a table");
		return;
	}
	int fd = open_target(j, r);
	if (fd < 0)
		return;
	if (value_now(fd, r->name, &now) < 0)
		fail(j, r->path, strerror(errno));
	else if (value_same(&now, &want))
		say(j, "unchanged:", r->path, r->remark);
	else if (!j->dry && (add_set(j, r, &now, &want) < 0 || value_put(fd, r->name, &want) < 0))
		fail(j, r->path, strerror(errno));
	else
		say(j, "set", r->path, r->remark);
	close(fd);
}

/* Read a field: 1; 0 at the end of the table; -1 if it is cut off or too long. */
static int read_field(char *out, size_t size)
{
	for (size_t n = 0; n < size; n++) {
		int byte = getc_unlocked(stdin);

		if (byte == EOF)
			return n ? -1 : 0;
		out[n] = (char)byte;
		if (!byte)
			return 1;
	}
	return -1;
}

static int read_row(struct row *r)
{
	int got = read_field(r->kind, sizeof(r->kind));

	if (got == 1 && (read_field(r->path, sizeof(r->path)) != 1 ||
			 read_field(r->name, sizeof(r->name)) != 1 ||
			 read_field(r->value, sizeof(r->value)) != 1 ||
			 read_field(r->remark, sizeof(r->remark)) != 1))
		return -1;
	return got;
}

int script(const char *mode, bool quiet)
{
	static struct job j;
	static struct row r;
	bool undo = !strcmp(mode, "undo");
	int got;

	j.quiet = quiet;
	j.dry = !strcmp(mode, "dry");
	if (!j.dry && journal_open(&j.journal, !undo) < 0)
		return 2;
	while ((got = read_row(&r)) == 1) {
		if (undo)
			remember_row(&j, &r);
		else if (r.kind[0] == 'S')
			add_session(&j, &r);
		else
			apply_row(&j, &r);
	}
	if (got < 0)
		fail(&j, "", "the table is truncated");
	if (undo && got == 0)
		undo_journal(&j);
	return fflush(stdout) || j.failed;
}
