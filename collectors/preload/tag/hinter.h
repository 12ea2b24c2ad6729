/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets the hints of a new file in the program that creates it. A hint is advice: errors of a store
 * are counted, and the journal has the first one of each file.
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

/* Memory for one file, which is too large for a stack that may be a signal handler's. */
struct tag_slot {
	uint32_t taken;
	struct tag_match match;
	const char *name; /* in `path`, below the root */
	uint32_t length;
	uint16_t root;
	char path[TAG_MAX_NAME], group[TAG_MAX_GROUP + 16], value[TAG_MAX_VALUE + 512];
};

/* Map a trusted file for reading; NULL: not possible. */
const void *tag_map(const char *path, size_t *size);
/* Open the rule table and the journal next to it; false: there is no table. */
bool hinter_open(struct hinter *h, const char *table);
/* Get the path of an open file, without symbolic links; returns its length, 0: it has none. */
uint32_t tag_name_of(long fd, char *out);
/* The same from the path of the call that created the file; 0: not possible (name.c). */
uint32_t tag_name_given(const struct tag_table *t, int dirfd, const char *path, char *out);
/*
 * Find the hints for a file that the process creates and whose path of `length` bytes is in
 * slot->path; returns TAG_C_SET, or why there are none.
 */
enum tag_count hinter_find(const struct hinter *h, struct tag_slot *slot, uint32_t length,
			   uint32_t pid);
/* Note a file without hints because of the type of its task; slot->match is its match. */
void hinter_withhold(struct hinter *h, const struct tag_slot *slot, uint32_t pid);
/* Set the hints that were found on the open file, and note it. */
void hinter_set(struct hinter *h, struct tag_slot *slot, int fd, uint32_t pid);

#endif
