/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setting the hints of one new file, in the program that creates it. A hint is advice: what a store
 * answers is counted, with the first reasons in the journal.
 */
#ifndef TRACEHINT_TAG_HINTER_H
#define TRACEHINT_TAG_HINTER_H

#include "journal.h"
#include "store.h"
#include "table.h"

struct hinter {
	struct tag_table table;
	struct tag_journal journal;
};

/* What one file needs: more than a stack that may be a signal handler's holds. */
struct tag_slot {
	uint32_t taken;
	struct tag_match match;
	const char *name; /* in `path`, below the root */
	uint32_t length;
	uint16_t root;
	char path[TAG_MAX_NAME], group[TAG_MAX_GROUP + 16], value[TAG_MAX_VALUE + 512];
};

/* A file in memory, for reading; NULL: it cannot be. */
const void *tag_map(const char *path, size_t *size);
/* The rule table and the journal beside it; false: there is no table. */
bool hinter_open(struct hinter *h, const char *table);
/* An open file's name without symbolic links and relative parts; its length, 0: it has none. */
uint32_t tag_name_of(long fd, char *out);
/* The same from the path that made the file, where that tells it (name.c); 0: it does not. */
uint32_t tag_name_given(const struct tag_table *t, int dirfd, const char *path, char *out);
/*
 * What is to be set on the file whose name of `length` bytes is in slot->path and which the process
 * makes, and why not.
 */
enum tag_count hinter_find(const struct hinter *h, struct tag_slot *slot, uint32_t length,
			   uint32_t pid);
/* Note a file that gets no hint because of who makes it: slot->match was found for it. */
void hinter_withhold(struct hinter *h, const struct tag_slot *slot, uint32_t pid);
/* Set what was found on the open file, and note it. */
void hinter_set(struct hinter *h, struct tag_slot *slot, int fd, uint32_t pid);

#endif
