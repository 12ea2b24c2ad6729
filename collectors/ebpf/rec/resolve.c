// SPDX-License-Identifier: Apache-2.0
/*
 * Turns the kernel's path records (names from last to first) into paths, and the strings of rename,
 * link, unlink ... into absolute paths with the identity of the file there after the call. A bare
 * name below a directory that the kernel named needs no look-up; other strings may lead through
 * symbolic links, which are read.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "rec.h"

#define TEXT (3 * TH_MAX_PATH)
#define MAX_LINKS 40 /* as in the kernel */

/* Heap offsets of the newest paths, by identifier modulo the table's size. */
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

/* Remove ".", ".." and repeated "/" from the text of a path. */
static void normalize_path(char *path)
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

/* Replace the first symbolic link in a path by its target; false if there is none. */
static bool follow_link(char *path, size_t size, const char *root)
{
	char target[TH_MAX_PATH], out[TEXT];

	for (char *at = strchr(path + 1, '/');; at = strchr(at + 1, '/')) {
		const char *rest = at ? at : "", *slash;
		ssize_t n;
		int len;

		if (at)
			*at = 0;
		n = readlink(path, target, sizeof(target) - 1);
		slash = strrchr(path, '/');
		if (at)
			*at = '/';
		if (n > 0) {
			target[n] = 0;
			len = *target == '/'
				      ? snprintf(out, sizeof(out), "%s%s%s", root, target, rest)
				      : snprintf(out, sizeof(out), "%.*s/%s%s", (int)(slash - path),
						 path, target, rest);
			if (len < 0 || (size_t)len >= size)
				return false;
			memcpy(path, out, (size_t)len + 1);
			return true;
		}
		if (!at)
			return false;
	}
}

/*
 * Resolve symbolic links in a directory's path, as far as they still exist. A directory that was
 * renamed or removed since the call keeps its name at that time: the current name is not queried.
 * schemas/spool/names.py resolves links that are gone.
 */
static void resolve_dir_links(char *path, size_t size, const char *root)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(__NR_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd >= 0)
		close(fd);
	else
		for (int i = 0; i < MAX_LINKS && follow_link(path, size, root); i++)
			;
	normalize_path(path);
}

static size_t make_absolute(char *out, const struct th_name *rec, unsigned int dir,
			    const char *text)
{
	const char *slash = strrchr(text, '/'), *base = slash ? slash + 1 : text;
	char parent[TEXT], root[TH_MAX_PATH + 512];
	const char *from;

	snprintf(root, sizeof(root), "%s", path_text(rec->root));
	if (!strcmp(root, "/"))
		*root = 0;
	from = text[0] == '/' ? root : path_text(dir);
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
			resolve_dir_links(out, TEXT, root);
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
		resolve_dir_links(parent, sizeof(parent), root);
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

	out.len = (unsigned int)make_absolute(first, rec, rec->dir, text);
	if (rec->op == TH_NAME_SYMLINK) {
		out.new_len = (unsigned int)snprintf(second, TEXT, "%s", other);
	} else if (rec->new_len) {
		out.new_len = (unsigned int)make_absolute(second, rec, rec->new_dir, other);
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
