// SPDX-License-Identifier: Apache-2.0
/*
 * Turns the kernel's path records (names from last to first) into paths, and
 * the strings of rename, link, unlink ... into absolute paths with the identity
 * of what is there afterwards. A bare name below a directory that the kernel
 * named needs no look-up; other strings may lead through symbolic links, so
 * their directory is opened (O_PATH: no effect on it) and asked for its name.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "rec.h"

#define TEXT (3 * TH_MAX_PATH)

/* Where the newest paths lie on the heap, by identifier modulo the table's size. */
static struct {
	uint64_t off;
	unsigned int id;
	unsigned int len;
} places[TH_PATHS_KEPT];

/* "c\0b\0a\0" becomes "/a/b/c". */
void resolve_path_added(const struct th_path *rec)
{
	const char *names = (const char *)(rec + 1);
	struct th_spool_path out = {.id = rec->id};
	char text[TH_MAX_PATH + 512];
	size_t end = rec->len, at = 0;

	while (end > 0 && at < sizeof(text) - 257) {
		size_t start = end - 1;

		while (start > 0 && names[start - 1])
			start--;
		text[at++] = '/';
		memcpy(text + at, names + start, end - 1 - start);
		at += end - 1 - start;
		end = start;
	}
	if (!at)
		text[at++] = '/';
	out.len = (unsigned int)at;
	out.off = spool_text(text, at);
	spool_put(SPOOL_PATHS, &out, sizeof(out));
	places[rec->id % TH_PATHS_KEPT].id = rec->id;
	places[rec->id % TH_PATHS_KEPT].off = out.off;
	places[rec->id % TH_PATHS_KEPT].len = out.len;
}

static const char *path_text(unsigned int id)
{
	static char text[TH_MAX_PATH + 512];
	unsigned int i = id % TH_PATHS_KEPT;
	size_t len = id && places[i].id == id && places[i].len < sizeof(text)
			     ? spool_fetch(places[i].off, text, places[i].len)
			     : 0;

	text[len] = 0;
	return text;
}

/* Without ".", ".." and doubled "/", by the text alone. */
static void lexical(char *path)
{
	char *out = path;

	for (const char *at = path; *at;) {
		size_t n;

		at += strspn(at, "/");
		n = strcspn(at, "/");
		if (n == 2 && !strncmp(at, "..", 2)) {
			while (out > path && *--out != '/')
				;
		} else if (n && !(n == 1 && *at == '.')) {
			*out++ = '/';
			memmove(out, at, n);
			out += n;
		}
		at += n;
	}
	if (out == path)
		*out++ = '/';
	*out = 0;
}

/*
 * Without symbolic links where that can be found out. The directory can have been
 * renamed or removed since the call: only where there are links is it asked for
 * its name. What is gone stays as it was written; schemas/spool_links.py goes on.
 */
static void canonical_dir(char *path, size_t size)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};
	char link[64], found[TEXT];
	struct stat st;
	ssize_t n;
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd >= 0) {
		lexical(path);
		close(fd);
		return;
	}
	if (errno == ENOENT && !strstr(path, "/../"))
		lexical(path);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, found, sizeof(found) - 1);
	/* a directory that is gone is called "... (deleted)" */
	if (n > 0 && (size_t)n < size && !fstat(fd, &st) && st.st_nlink) {
		memcpy(path, found, (size_t)n);
		path[n] = 0;
	}
	close(fd);
}

static size_t absolute(char *out, const struct th_name *rec, unsigned int dir, const char *text)
{
	const char *slash = strrchr(text, '/'), *base = slash ? slash + 1 : text;
	const char *from = text[0] == '/' ? path_text(rec->root) : path_text(dir);
	char parent[TEXT];

	if (!*text && dir)
		return (size_t)snprintf(out, TEXT, "%s", from); /* AT_EMPTY_PATH */
	if (!strcmp(from, "/"))
		from = "";
	if (!slash && strcmp(base, ".") && strcmp(base, ".."))
		return (size_t)snprintf(out, TEXT, "%s/%s", from, base);
	if (!*base || !strcmp(base, ".") || !strcmp(base, "..")) {
		/* ends in a directory: "a/", "." or ".." */
		snprintf(out, TEXT, "%s%s%s", from, text[0] == '/' ? "" : "/", text);
		for (size_t n = strlen(out); n > 1 && out[n - 1] == '/'; n--)
			out[n - 1] = 0;
		slash = strrchr(out, '/');
		base = slash ? slash + 1 : out;
		if (!strcmp(base, ".") || !strcmp(base, "..")) {
			canonical_dir(out, TEXT);
			return strlen(out);
		}
		snprintf(parent, sizeof(parent), "%.*s", (int)(slash ? slash - out : 0), out);
	} else {
		snprintf(parent, sizeof(parent), "%s%s%.*s", from, text[0] == '/' ? "" : "/",
			 (int)(slash - text), text);
	}
	char keep[TH_MAX_PATH];

	snprintf(keep, sizeof(keep), "%s", base);
	if (*parent)
		canonical_dir(parent, sizeof(parent));
	if (!strcmp(parent, "/"))
		*parent = 0;
	return (size_t)snprintf(out, TEXT, "%s/%s", parent, keep);
}

void resolve_name(const struct th_name *rec)
{
	static char first[TEXT], second[TEXT];
	const char *text = rec->len ? (const char *)(rec + 1) : "";
	const char *other = rec->new_len ? (const char *)(rec + 1) + rec->len : "";
	struct th_spool_name out = {
		.op = rec->op,
		.epoch = rec->epoch,
		.t_ns = rec->t_ns,
		.size = rec->size,
	};
	struct stat st;
	const char *now = first;

	out.len = (unsigned int)absolute(first, rec, rec->dir, text);
	if (rec->op == TH_NAME_SYMLINK) {
		out.new_len = (unsigned int)snprintf(second, TEXT, "%s", other);
	} else if (rec->new_len) {
		out.new_len = (unsigned int)absolute(second, rec, rec->new_dir, other);
		now = second;
	}
	if (rec->op != TH_NAME_UNLINK && rec->op != TH_NAME_RMDIR &&
	    !fstatat(AT_FDCWD, now, &st, AT_SYMLINK_NOFOLLOW)) {
		out.ino = st.st_ino;
		out.dev = st.st_dev;
		out.mode = st.st_mode;
		out.nlink = (unsigned int)st.st_nlink;
	}
	out.off = spool_text(first, out.len);
	out.new_off = spool_text(second, out.new_len);
	spool_put(SPOOL_NAMES, &out, sizeof(out));
}
