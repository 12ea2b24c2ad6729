// SPDX-License-Identifier: Apache-2.0
/*
 * The tagger: sets a file's hints after the open that created it, before the program can write to
 * it. Enabled if TRACEHINT_HINTS names a rule table. Its errors never reach the program.
 */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "../hook.h"
#include "hinter.h"

#define O_PATH_CLOEXEC 012000000
#define AT_EMPTY_PATH 0x1000
#define SLOTS 8

static TH_LARGE struct hinter hinter;
static struct tag_slot *slots;

static struct tag_slot *take_slot(void)
{
	for (int i = 0; i < SLOTS; i++)
		if (!__atomic_exchange_n(&slots[i].taken, 1, __ATOMIC_ACQUIRE))
			return &slots[i];
	return NULL;
}

static bool is_writable_and_empty(int fd)
{
	struct statx facts;
	long flags = th_sys(__NR_fcntl, fd, F_GETFL);

	return !th_failed(flags) && (flags & O_ACCMODE) != O_RDONLY &&
	       !th_failed(th_sys(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE,
				 &facts)) &&
	       (facts.stx_mode & S_IFMT) == S_IFREG && !facts.stx_size;
}

/*
 * A shell creates the file of `program > file` before it executes the program, when the type of its
 * writer is not known yet. So a program looks up its output files again before its first byte.
 */
static void redirected(int fd)
{
	struct tag_slot *slot = is_writable_and_empty(fd) ? take_slot() : NULL;

	if (!slot)
		return;
	uint32_t pid = (uint32_t)th_pid();

	if (hinter_find(&hinter, slot, tag_name_of(fd, slot->path), pid) == TAG_C_SET &&
	    slot->match.type != TAG_UNASKED)
		hinter_set(&hinter, slot, fd, pid);
	__atomic_store_n(&slot->taken, 0, __ATOMIC_RELEASE);
}

static bool start(const char *value, const struct th_program *program)
{
	(void)program;
	slots = th_map_wiped(SLOTS * sizeof(*slots));
	if (!slots)
		slots = th_map(SLOTS * sizeof(*slots));
	if (!slots || !hinter_open(&hinter, value))
		return false;
	for (int fd = 1; fd <= 2 && hinter.table.header->typed; fd++)
		redirected(fd);
	return true;
}

static bool ends_with(const char *text, uint32_t length, const char *end, uint32_t size)
{
	return length >= size && th_same(text + length - size, end, size);
}

/* Get the file's name; returns its length. A file of O_TMPFILE is looked up by its new name. */
static uint32_t name_at(int dirfd, const char *path, int fd, char *out)
{
	static const char gone[] = " (deleted)";
	uint32_t length = tag_name_given(&hinter.table, dirfd, path, out);
	long other;

	if (length)
		return length;
	length = tag_name_of(fd, out);
	if (!ends_with(out, length, gone, sizeof(gone) - 1))
		return length;
	other = th_sys(__NR_openat, dirfd, path, O_PATH_CLOEXEC, 0);
	if (th_failed(other))
		return 0;
	length = tag_name_of(other, out);
	th_sys(__NR_close, other);
	return length;
}

static void created(int dirfd, const char *path, int fd)
{
	struct tag_slot *slot = take_slot();

	tag_count(&hinter.journal, TAG_C_CREATED);
	if (!slot) {
		tag_count(&hinter.journal, TAG_C_DROPPED);
		return;
	}
	uint32_t pid = (uint32_t)th_pid();
	enum tag_count found =
		hinter_find(&hinter, slot, name_at(dirfd, path, fd, slot->path), pid);

	if (found == TAG_C_SET) {
		hinter_set(&hinter, slot, fd, pid);
	} else {
		tag_count(&hinter.journal, found);
		hinter_withhold(&hinter, slot, pid);
	}
	__atomic_store_n(&slot->taken, 0, __ATOMIC_RELEASE);
}

const struct th_observer th_tagger = {
	.variable = "TRACEHINT_HINTS",
	.bare = true,
	.start = start,
	.created = created,
};
