// SPDX-License-Identifier: Apache-2.0
/* Finds, sets and notes the hints of a file: see tag/hinter.h. */
#include "../trusted.h"
#include "hinter.h"
#include "store.h"
#include "word.h"

#define O_RDONLY_CLOEXEC 02000000
#define PROT_READ 1
#define MAP_PRIVATE 2
#define ETIMEDOUT 110
#define MAX_SETTINGS 64
#define MAX_SILENT 3
#define OWN ".tracehint/" /* tracehint's directory below a root: never hinted */

struct stat64 { /* struct stat of the kernel on x86-64 */
	uint64_t dev, ino, nlink;
	uint32_t mode, uid, gid, pad;
	uint64_t rdev;
	int64_t size;
	uint64_t rest[12];
};

const void *tag_map(const char *path, size_t *size)
{
	struct stat64 st;
	long fd = th_open_trusted(path, O_RDONLY_CLOEXEC);
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

bool hinter_open(struct hinter *h, const char *table)
{
	size_t size = 0;
	const void *base = tag_map(table, &size);

	if (!base || !tag_use(&h->table, base, size))
		return false;
	tag_journal_open(&h->journal, table);
	return true;
}

uint32_t tag_name_of(long fd, char *out)
{
	char link[TH_FD_NAME];
	long length = th_sys(__NR_readlink, th_fd_name(link, (int)fd), out, TAG_MAX_NAME);

	return th_failed(length) || length >= TAG_MAX_NAME || out[0] != '/' ? 0 : (uint32_t)length;
}

/* Return the type of the task. The last result is stored: it is valid until the next exec. */
static uint32_t type_of(const struct hinter *h, struct tag_slot *slot, uint32_t pid)
{
	static uint64_t last; /* process and type */
	uint64_t known = __atomic_load_n(&last, __ATOMIC_RELAXED);

	if (pid == (uint32_t)(known >> 32))
		return (uint32_t)known;
	uint32_t type = tag_type_of(&h->table, pid, slot->value);

	if (type != TAG_UNKNOWN)
		__atomic_store_n(&last, (uint64_t)pid << 32 | type, __ATOMIC_RELAXED);
	return type;
}

enum tag_count hinter_find(const struct hinter *h, struct tag_slot *slot, uint32_t length,
			   uint32_t pid)
{
	static const enum tag_count why[] = {
		[TAG_FOUND] = TAG_C_NO_HINT,	 [TAG_NO_RULE] = TAG_C_NO_RULE,
		[TAG_CONFLICT] = TAG_C_CONFLICT, [TAG_COSTLY] = TAG_C_COSTLY,
		[TAG_DAMAGED] = TAG_C_DAMAGED,
	};

	slot->match.type = TAG_UNASKED;
	if (!length)
		return TAG_C_NAMELESS;
	slot->length = length;
	slot->name = tag_below(&h->table, slot->path, &slot->length, &slot->root);
	if (!slot->name || th_starts(slot->name, OWN))
		return TAG_C_OUTSIDE;
	tag_look_up(&h->table, slot->name, slot->length, TAG_UNASKED, &slot->match);
	if (slot->match.asks)
		tag_look_up(&h->table, slot->name, slot->length, type_of(h, slot, pid),
			    &slot->match);
	return slot->match.answer == TAG_FOUND && slot->match.set != TAG_NONE
		       ? TAG_C_SET
		       : why[slot->match.answer];
}

static struct tag_record record_of(const struct tag_slot *slot, uint32_t pid)
{
	return (struct tag_record){.pid = pid,
				   .path_size = (uint16_t)slot->length,
				   .root = slot->root,
				   .type = slot->match.type};
}

void hinter_withhold(struct hinter *h, const struct tag_slot *slot, uint32_t pid)
{
	struct tag_record record = record_of(slot, pid);

	if (slot->match.type == TAG_UNASKED)
		return;
	record.withheld = 1;
	tag_note(&h->journal, record, slot->name);
}

/* Apply one setting. After too many timeouts a tool is not run again: programs wait for it. */
static long put(struct hinter *h, const struct tag_setting *setting, struct tag_slot *slot, int fd)
{
	long size = tag_value(&h->table, setting, slot->group, slot->value);

	if (size < 0)
		return size;
	if (setting->flags & TAG_CLASS && tag_counted(&h->journal, TAG_C_SILENT) >= MAX_SILENT)
		return -ETIMEDOUT;
	long done = tag_put(&h->table, setting, fd, slot->value, (size_t)size);

	if (done == -ETIMEDOUT)
		tag_count(&h->journal, TAG_C_SILENT);
	return done;
}

void hinter_set(struct hinter *h, struct tag_slot *slot, int fd, uint32_t pid)
{
	struct tag_record record = record_of(slot, pid);
	uint32_t count = 0;
	const struct tag_setting *settings =
		tag_settings(&h->table, &slot->match, slot->name, slot->group, &count);

	for (uint32_t i = 0; settings && i < count && i < MAX_SETTINGS; i++) {
		long done = put(h, &settings[i], slot, fd);

		if (!th_failed(done))
			continue;
		record.failed |= 1ull << i;
		record.error = record.error ? record.error : (uint32_t)-done;
	}
	tag_count(&h->journal, !settings       ? TAG_C_DAMAGED
			       : record.failed ? TAG_C_REFUSED
					       : TAG_C_SET);
	if (settings)
		tag_note(&h->journal, record, slot->name);
}
