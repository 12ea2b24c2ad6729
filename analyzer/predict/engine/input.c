// SPDX-License-Identifier: Apache-2.0
/* Reading the two input files: a workload, and a sequence of scenarios.
 *
 * Both are sequences of arrays in a fixed order, in native byte order. An array consists of its
 * name (8 bytes, padded with zeros), the item size (int64), the count (int64), and its items,
 * padded to 8 bytes. Input is not trusted: an inconsistent count, an index out of range or a
 * number that is not finite is an error.
 */
#include "sim.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME 8
#define HEAD (NAME + 2 * sizeof(int64_t))
#define MOST (1 << 28)	 /* items */
#define MOST_HOSTS 65536 /* hosts, servers, sites, groups */
#define MOST_CORES 4096
#define MOST_PROCESSORS 65536
#define LEAST_PROCESSORS 1e-3
#define MOST_SLOTS (1 << 22)
#define MOST_RATE 1e15
#define LEAST_SPEED 1e-6

int complain(const char *what, const char *name)
{
	fprintf(stderr, "tracehint-sim: %s: %s\n", name, what);
	return -1;
}

int file_open(struct file *f, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	memset(f, 0, sizeof(*f));
	if (fd < 0)
		return complain("cannot be opened", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0) {
		close(fd);
		return complain("is empty or not a regular file", path);
	}
	void *data = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED)
		return complain("cannot be mapped", path);
	f->data = data;
	f->size = st.st_size;
	return 0;
}

void file_close(struct file *f)
{
	if (f->data)
		munmap((void *)f->data, f->size);
	f->data = NULL;
}

/* Read the next array. It may be empty; then `at` must not be dereferenced. */
static int next(struct file *f, const char *name, size_t item, struct array *a)
{
	char wanted[NAME + 1] = {0};
	int64_t size, count;

	if (f->size - f->at < HEAD)
		return complain("the file ends before it", name);
	strncpy(wanted, name, NAME);
	if (memcmp(f->data + f->at, wanted, NAME))
		return complain("another array is in its place", name);
	memcpy(&size, f->data + f->at + NAME, sizeof(size));
	memcpy(&count, f->data + f->at + NAME + sizeof(size), sizeof(count));
	f->at += HEAD;
	if (size != (int64_t)item || count < 0 || count > MOST)
		return complain("has an invalid size", name);
	size_t bytes = (size_t)count * item, padded = (bytes + 7) & ~(size_t)7;
	if (padded > f->size - f->at)
		return complain("the file ends within it", name);
	a->at = f->data + f->at;
	a->count = count;
	f->at += padded;
	return 0;
}

/* Read the next array, which must have `count` items; NULL: an error. */
static const void *counted(struct file *f, const char *name, size_t item, size_t count)
{
	struct array a;

	if (next(f, name, item, &a))
		return NULL;
	if (a.count == count)
		return a.at;
	complain("has the wrong length", name);
	return NULL;
}

/* Read numbers from 0 to `most`. */
static int numbers(struct file *f, const char *name, size_t count, const double **at, double most)
{
	*at = counted(f, name, sizeof(double), count);
	if (!*at)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (!isfinite((*at)[i]) || (*at)[i] < 0 || (*at)[i] > most)
			return complain("contains a number out of range", name);
	return 0;
}

/* Read integers in [low, high). */
static int indices(struct file *f, const char *name, size_t count, const int32_t **at, int64_t low,
		   int64_t high)
{
	*at = counted(f, name, sizeof(int32_t), count);
	if (!*at)
		return -1;
	for (size_t i = 0; i < count; i++)
		if ((*at)[i] < low || (*at)[i] >= high)
			return complain("contains an index out of range", name);
	return 0;
}

/* Read amounts of at least `low`. */
static int amounts(struct file *f, const char *name, size_t count, const int64_t **at, int64_t low)
{
	*at = counted(f, name, sizeof(int64_t), count);
	if (!*at)
		return -1;
	for (size_t i = 0; i < count; i++)
		if ((*at)[i] < low || (*at)[i] > INT64_MAX / 4)
			return complain("contains an amount out of range", name);
	return 0;
}

/* Read offsets of `count` lists in an array of `total` items: count + 1, non-decreasing. */
static int begins(struct file *f, const char *name, size_t count, int64_t total, const int64_t **at)
{
	if (amounts(f, name, count + 1, at, 0))
		return -1;
	for (size_t i = 0; i < count; i++)
		if ((*at)[i] > (*at)[i + 1])
			return complain("decreases", name);
	if ((*at)[0] != 0 || (*at)[count] != total)
		return complain("does not cover the array it divides", name);
	return 0;
}

/* Read the first array, which is the format version of the file. */
static int format_read(struct file *f)
{
	const int64_t *format;

	if (amounts(f, "format", 1, &format, 0))
		return -1;
	return *format == FORMAT ? 0 : complain("is not of this program's form", "format");
}

int workload_read(struct workload *w, struct file *f)
{
	const int64_t *count;

	memset(w, 0, sizeof(*w));
	if (format_read(f) || amounts(f, "counts", 5, &count, 0))
		return -1;
	for (int i = 0; i < 5; i++)
		if (count[i] > MOST)
			return complain("exceeds the limit", "counts");
	w->tasks = count[0], w->files = count[1], w->types = count[2];
	w->ops = count[3], w->deps = count[4];
	size_t ops = w->ops;
	if (begins(f, "opbegin", w->tasks, w->ops, &w->op_begin) ||
	    indices(f, "cores", w->tasks, &w->cores, 1, MOST_CORES + 1) ||
	    indices(f, "type", w->tasks, &w->type, 0, w->types) ||
	    begins(f, "depbegin", w->tasks, w->deps, &w->dep_begin) ||
	    indices(f, "dep", w->deps, &w->dep, 0, w->tasks) ||
	    indices(f, "opkind", ops, &w->op_kind, 0, OP_KINDS) ||
	    indices(f, "opfile", ops, &w->op_file, NONE, w->files) ||
	    amounts(f, "opstart", ops, &w->op_start, 0) ||
	    amounts(f, "oplength", ops, &w->op_length, 0) ||
	    amounts(f, "opbytes", ops, &w->op_bytes, 0) ||
	    numbers(f, "opsecs", ops, &w->op_seconds, 1e15) ||
	    numbers(f, "busy", w->tasks, &w->busy, 1) ||
	    amounts(f, "size", w->files, &w->size, 0) ||
	    indices(f, "produced", w->files, &w->produced, 0, 2))
		return -1;
	for (size_t i = 0; i < ops; i++)
		if (w->op_kind[i] != OP_COMPUTE && w->op_file[i] == NONE)
			return complain("an operation without a file", "opfile");
	return f->at == f->size ? 0 : complain("has bytes after the last array", "workload");
}

/* Rates so low that times would lose all precision are rejected. */
static bool rate_can_be(double rate)
{
	return rate == 0 || (rate >= 1 && rate <= MOST_RATE);
}

static int hosts_check(const struct scenario *s)
{
	double slots = 0;

	for (int32_t i = 0; i < s->hosts; i++) {
		const double *h = s->host + (size_t)i * HOST_SETTINGS;

		for (int k = HOST_OUT; k <= HOST_LOCAL; k++)
			if (!rate_can_be(h[k]))
				return complain("invalid rate", "host");
		if (h[HOST_CORES] > MOST_CORES || h[HOST_SITE] >= s->sites ||
		    h[HOST_MACHINE] >= s->machines || h[HOST_SPEED] < LEAST_SPEED)
			return complain("invalid host", "host");
		slots += (int32_t)h[HOST_CORES];
	}
	for (int32_t i = 0; i < 2 * s->sites; i++)
		if (!rate_can_be(s->site[i]))
			return complain("invalid rate", "site");
	for (int32_t i = 0; i < s->machines; i++)
		if (s->processors[i] > 0 && s->processors[i] < LEAST_PROCESSORS)
			return complain("too few processors", "procs");
	return slots >= 1 && slots <= MOST_SLOTS ? 0 : complain("no cores, or too many", "host");
}

static int settings_check(const struct scenario *s)
{
	const double *set = s->set;

	if (set[SET_SCHEDULER] >= SCHEDULERS || set[SET_LAW] > LAW_STRIPE || set[SET_CHUNK] < 1 ||
	    set[SET_WIDTH] < 1 || set[SET_WIDTH] > MOST_HOSTS || set[SET_COPIES] < 1 ||
	    set[SET_COPIES] > MAX_COPIES || set[SET_WINDOW] < 1 || set[SET_META_SERVERS] < 1 ||
	    set[SET_META_SERVERS] > MOST_HOSTS || !rate_can_be(set[SET_STREAM]) ||
	    !rate_can_be(set[SET_CLIENT]) || !rate_can_be(set[SET_SHARED]) || set[SET_SPREAD] > 1 ||
	    set[SET_POOL] < 1 || set[SET_POOL] > s->servers)
		return complain("setting out of range", "set");
	return 0;
}

/* Read an array of one item per file or task; an empty one means the default for all. */
static int optional(struct file *f, const char *name, size_t count, const int32_t **at, int64_t low,
		    int64_t high)
{
	size_t where = f->at;
	struct array a;

	*at = NULL;
	if (next(f, name, sizeof(int32_t), &a))
		return -1;
	if (a.count == 0)
		return 0;
	f->at = where;
	return indices(f, name, count, at, low, high);
}

/* Check the targets of files: a host or a group, depending on the law. */
static int targets_check(const struct scenario *s, const struct workload *w)
{
	for (int32_t i = 0; s->law && i < w->files; i++) {
		int32_t target = s->target ? s->target[i] : NONE;

		if (s->law[i] == LAW_NODE && (target < 0 || target >= s->hosts))
			return complain("a file on a host that does not exist", "target");
		if (s->law[i] == LAW_GROUP && (target < 0 || target >= s->groups))
			return complain("a file in a group that does not exist", "target");
	}
	return 0;
}

int scenario_read(struct scenario *s, const struct workload *w, struct file *f)
{
	const int64_t *count;
	struct array a;

	memset(s, 0, sizeof(*s));
	if (f->at == f->size)
		return 0;
	if (amounts(f, "counts", 5, &count, 0))
		return -1;
	for (int i = 0; i < 5; i++)
		if (count[i] > (i == 3 ? MOST : MOST_HOSTS))
			return complain("exceeds the limit", "counts");
	s->hosts = count[0], s->servers = count[1], s->sites = count[2], s->groups = count[3];
	s->machines = count[4];
	if (s->groups > w->files)
		return complain("more groups than files", "counts");
	if (s->hosts < 1 || s->servers < 1 || s->sites < 1 || s->machines < 1)
		return complain("no host, no server, no site or no machine", "counts");
	if (numbers(f, "set", SETTINGS, &s->set, 1e18) || settings_check(s) ||
	    numbers(f, "host", (size_t)s->hosts * HOST_SETTINGS, &s->host, 1e18) ||
	    numbers(f, "site", 2 * (size_t)s->sites, &s->site, 1e18) ||
	    numbers(f, "procs", s->machines, &s->processors, MOST_PROCESSORS) || hosts_check(s) ||
	    indices(f, "server", s->servers, &s->server, 0, s->hosts) ||
	    optional(f, "law", w->files, &s->law, NONE, LAWS) ||
	    optional(f, "copies", w->files, &s->copies, 0, MAX_COPIES + 1) ||
	    optional(f, "target", w->files, &s->target, NONE, INT32_MAX) ||
	    optional(f, "plan", w->tasks, &s->plan, ANYWHERE, s->hosts))
		return -1;
	size_t where = f->at;
	if (next(f, "chunk", sizeof(int64_t), &a))
		return -1;
	f->at = where;
	if (amounts(f, "chunk", a.count ? (size_t)w->files : 0, &s->chunk, 0))
		return -1;
	if (a.count == 0)
		s->chunk = NULL;
	return targets_check(s, w) ? -1 : 1;
}
