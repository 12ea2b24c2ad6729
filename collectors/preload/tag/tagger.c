// SPDX-License-Identifier: Apache-2.0
/*
 * The tagger: sets a file's hints after the open that made it and before anybody can write to it.
 * On when TRACEHINT_HINTS names a rule table. A hint is advice: what a store answers is counted,
 * with the first reasons in the journal, and never reaches the program.
 */
#include "../hook.h"
#include "journal.h"
#include "store.h"
#include "table.h"

#define O_RDONLY_CLOEXEC 02000000
#define O_PATH_CLOEXEC 012000000
#define PROT_READ 1
#define MAP_PRIVATE 2
#define SLOTS 8
#define OWN ".tracehint/" /* our own directory below a root: never hinted */

struct stat64 { /* struct stat of the kernel on x86-64 */
	uint64_t dev, ino, nlink;
	uint32_t mode, uid, gid, pad;
	uint64_t rdev;
	int64_t size;
	uint64_t rest[12];
};

/* What one file needs: more than a stack that may be a signal handler's holds. */
struct slot {
	uint32_t taken;
	struct tag_match match;
	char path[TAG_MAX_NAME], group[TAG_MAX_GROUP + 16], value[TAG_MAX_VALUE + 512];
};

static struct tag_table table;
static struct tag_journal journal;
static struct slot *slots;

static struct slot *take_slot(void)
{
	for (int i = 0; i < SLOTS; i++)
		if (!__atomic_exchange_n(&slots[i].taken, 1, __ATOMIC_ACQUIRE))
			return &slots[i];
	return NULL;
}

static const void *map_table(const char *path, size_t *size)
{
	struct stat64 st;
	long fd = th_sys(__NR_openat, TH_AT_FDCWD, path, O_RDONLY_CLOEXEC, 0);
	long at = -1;

	if (th_failed(fd))
		return NULL;
	if (!th_failed(th_sys(__NR_fstat, fd, &st)) && st.size > 0) {
		at = th_sys(__NR_mmap, 0, st.size, PROT_READ, MAP_PRIVATE, fd, 0);
		*size = (size_t)st.size;
	}
	th_sys(__NR_close, fd);
	return th_failed(at) ? NULL : (const void *)at;
}

static bool start(const char *value, const struct th_program *program)
{
	size_t size = 0;
	const void *base = map_table(value, &size);

	(void)program;
	if (!base || !tag_use(&table, base, size))
		return false;
	slots = th_map_wiped(SLOTS * sizeof(*slots));
	if (!slots)
		slots = th_map(SLOTS * sizeof(*slots));
	if (!slots)
		return false;
	tag_journal_open(&journal, value);
	return true;
}

/* An open file's name without symbolic links and relative parts; its length, 0: it has none. */
static uint32_t name_of(long fd, char *out)
{
	char link[32] = "/proc/self/fd/";
	char digits[12];
	uint32_t n = 14, count = 0;

	do {
		digits[count++] = '0' + fd % 10;
		fd /= 10;
	} while (fd);
	while (count)
		link[n++] = digits[--count];
	link[n] = 0;
	long length = th_sys(__NR_readlink, link, out, TAG_MAX_NAME);

	return th_failed(length) || length >= TAG_MAX_NAME || out[0] != '/' ? 0 : (uint32_t)length;
}

static bool ends_with(const char *text, uint32_t length, const char *end, uint32_t size)
{
	return length >= size && th_same(text + length - size, end, size);
}

/* The same; a file of O_TMPFILE is asked for by the name that it just got. */
static uint32_t name_at(int dirfd, const char *path, int fd, char *out)
{
	static const char gone[] = " (deleted)";
	uint32_t length = name_of(fd, out);
	long other;

	if (!ends_with(out, length, gone, sizeof(gone) - 1))
		return length;
	other = th_sys(__NR_openat, dirfd, path, O_PATH_CLOEXEC, 0);
	if (th_failed(other))
		return 0;
	length = name_of(other, out);
	th_sys(__NR_close, other);
	return length;
}

static void set_all(struct slot *slot, int fd, const char *name, uint32_t length, uint16_t root)
{
	struct tag_record record = {.pid = th_pid(), .path_size = length, .root = root};
	uint32_t count = 0;
	const struct tag_setting *settings =
		tag_settings(&table, &slot->match, name, slot->group, &count);

	for (uint32_t i = 0; settings && i < count && i < 64; i++) {
		long size = tag_value(&table, &settings[i], slot->group, slot->value);
		long done = size < 0 ? size
				     : tag_put(&table, &settings[i], fd, slot->value, (size_t)size);

		if (!th_failed(done))
			continue;
		record.failed |= 1ull << i;
		record.error = record.error ? record.error : (uint32_t)-done;
	}
	tag_count(&journal, !settings ? TAG_C_DAMAGED : record.failed ? TAG_C_REFUSED : TAG_C_SET);
	if (settings)
		tag_note(&journal, record, name);
}

static void tag_file(struct slot *slot, int dirfd, const char *path, int fd)
{
	static const enum tag_count why[] = {
		[TAG_FOUND] = TAG_C_NO_HINT,	 [TAG_NO_RULE] = TAG_C_NO_RULE,
		[TAG_CONFLICT] = TAG_C_CONFLICT, [TAG_COSTLY] = TAG_C_COSTLY,
		[TAG_DAMAGED] = TAG_C_DAMAGED,
	};
	uint16_t root = 0;
	uint32_t length = name_at(dirfd, path, fd, slot->path);
	const char *name = length ? tag_below(&table, slot->path, &length, &root) : NULL;

	if (!name || th_starts(name, OWN)) {
		tag_count(&journal, length ? TAG_C_OUTSIDE : TAG_C_NAMELESS);
		return;
	}
	tag_look_up(&table, name, length, &slot->match);
	if (slot->match.answer == TAG_FOUND && slot->match.set != TAG_NONE)
		set_all(slot, fd, name, length, root);
	else
		tag_count(&journal, why[slot->match.answer]);
}

static void created(int dirfd, const char *path, int fd)
{
	struct slot *slot = take_slot();

	tag_count(&journal, TAG_C_CREATED);
	if (!slot) {
		tag_count(&journal, TAG_C_DROPPED);
		return;
	}
	tag_file(slot, dirfd, path, fd);
	__atomic_store_n(&slot->taken, 0, __ATOMIC_RELEASE);
}

const struct th_observer th_tagger = {
	.variable = "TRACEHINT_HINTS",
	.start = start,
	.created = created,
};
