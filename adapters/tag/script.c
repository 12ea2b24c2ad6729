// SPDX-License-Identifier: Apache-2.0
/*
 * tracehint-tag script set|dry|undo [quiet]: the work of a setfattr script (adapters/stores/
 * driver.sh) below the working directory, with its table on standard input: records of five fields
 * ended by NUL bytes: kind (D directory, M directory to be made, F file, C file to be made), path,
 * attribute, value, remark. The script does the same by itself where this program is missing, but
 * not as root where others may write: only here no link or exchanged directory leads out.
 *
 * Exit status: 0 fine, 1 something failed, 2 the journal cannot be used.
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

static void print(FILE *out, const char *text)
{
	for (; *text; text++)
		putc(*text >= ' ' && *text <= '~' ? *text : '?', out);
}

static void line(FILE *out, const char *verb, const char *path, const char *remark)
{
	fprintf(out, "%s ./", verb);
	print(out, path);
	fputs("  ", out);
	print(out, remark);
	putc('\n', out);
}

void say(const struct job *j, const char *verb, const char *path, const char *remark)
{
	if (!j->quiet)
		line(stdout, verb, path, remark);
}

void fail(struct job *j, const char *path, const char *why)
{
	j->failed = true;
	line(stderr, "FAILED:", path, why);
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

/* Make the directories above the path, or the path too; each is noted before. */
static int make_folders(struct job *j, const char *path, bool all)
{
	char way[MAX_PATH];
	const char *field = way;

	for (size_t n = 0;; n++) {
		n += strcspn(path + n, "/");
		if (!path[n] && !all)
			return 0;
		snprintf(way, sizeof(way), "%.*s", (int)n, path);
		int fd = open_beneath(way, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		if (fd >= 0)
			close(fd);
		else if (errno != ENOENT || notes_add(&j->notes, MADE, &field, 1) < 0 ||
			 (make_folder(way) < 0 && errno != EEXIST))
			return -1;
		if (!path[n])
			return 0;
	}
}

/* Open the target; where it is not there, make it if it is to be made. -1: done with it. */
static int open_target(struct job *j, const struct row *r)
{
	const char *field = r->path;
	bool makes = r->kind[0] == 'M' || r->kind[0] == 'C';
	int fd = open_checked(r->path);

	if (fd < 0 && errno == ENOENT && !makes) {
		say(j, "not there:", r->path, r->remark);
		return -1;
	}
	if (fd < 0 && errno == ENOENT && j->dry) {
		say(j, "make", r->path, "");
		say(j, "set", r->path, r->remark);
		return -1;
	}
	if (fd < 0 && errno == ENOENT) {
		int made = make_folders(j, r->path, r->kind[0] == 'M');

		if (!made && r->kind[0] == 'C')
			made = notes_add(&j->notes, MADE, &field, 1) || make_empty(r->path);
		if (!made || errno == EEXIST)
			fd = open_checked(r->path);
	}
	if (fd < 0)
		fail(j, r->path, why_not(errno));
	return fd;
}

/* Note the value from before, as the script in shell does. */
static int note_old(struct job *j, const struct row *r, const struct value *was)
{
	char text[MAX_TEXT] = "0x";
	const char *fields[] = {r->path, r->name, text};

	if (!was->set)
		return 0;
	for (size_t i = 0; i < was->length; i++)
		snprintf(text + 2 + 2 * i, 3, "%02x", was->bytes[i]);
	if (!strcmp(r->name, MFS_CLASS))
		fields[2] = (const char *)was->bytes;
	return notes_add(&j->notes, OLD, fields, 3);
}

static void set(struct job *j, const struct row *r)
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
	else if (!j->dry && (note_old(j, r, &now) < 0 || value_put(fd, r->name, &want) < 0))
		fail(j, r->path, strerror(errno));
	else
		say(j, "set", r->path, r->remark);
	close(fd);
}

/* One field: 1; 0 at the end of the table; -1 where it is cut off or too long. */
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
	if (!j.dry && notes_open(&j.notes, !undo) < 0)
		return 2;
	while ((got = read_row(&r)) == 1) {
		if (undo)
			take_back(&j, &r);
		else
			set(&j, &r);
	}
	if (got < 0)
		fail(&j, "", "the table is cut off");
	if (undo && got == 0)
		take_back_notes(&j);
	if (!j.dry)
		notes_close(&j.notes);
	return fflush(stdout) || j.failed;
}
