/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: the files for which hints were set, and errors of the store. One file per host next
 * to the rule table, TABLE.journal.HOST, which all processes there share
 * (adapters/creation/journal.py reads it). It has a page of counts, then chunks of a page; a
 * process allocates a chunk for its first record. Disk space is allocated before it is mapped, so
 * that a full disk, kill -9 and a limit on file sizes do not affect the program.
 */
#ifndef TRACEHINT_TAG_JOURNAL_H
#define TRACEHINT_TAG_JOURNAL_H

#include "../th_sys.h"

#define TAG_JOURNAL_MAGIC "THJRNL\0\2"
#define TAG_CHUNK 4096u
#define TAG_RUN 16u		     /* chunks allocated together after the first is full */
#define TAG_JOURNAL_SIZE (1ul << 30) /* sparse */

enum tag_count {
	TAG_C_CREATED,
	TAG_C_OUTSIDE,
	TAG_C_NO_RULE,
	TAG_C_NO_HINT,
	TAG_C_CONFLICT,
	TAG_C_COSTLY,
	TAG_C_DAMAGED,
	TAG_C_SET,
	TAG_C_REFUSED,
	TAG_C_DROPPED,
	TAG_C_NAMELESS,
	TAG_C_SILENT, /* timeouts of a store's tool */
	TAG_COUNTS
};

struct tag_journal_header {
	char magic[8];
	uint64_t next; /* offset of the next free chunk */
	uint64_t counts[TAG_COUNTS];
};

/* `size` is stored last: a record without it was interrupted by a crash. */
struct tag_record {
	uint32_t size;	/* with the path, a multiple of 8 */
	uint32_t error; /* of the first setting that failed; 0: none did */
	uint32_t pid;
	uint16_t path_size, root;
	uint64_t failed;   /* one bit per setting of the file, the first is the lowest */
	uint64_t t_ns;	   /* since the epoch */
	uint32_t type;	   /* of the task that created it, as in the table's makers */
	uint32_t withheld; /* 1: nothing was set, because of that type */
};

struct tag_chunk {
	uint32_t used;
	uint32_t more; /* chunks of the same process that follow */
	char records[TAG_CHUNK - 8];
};

struct tag_journal {
	struct tag_journal_header *header; /* NULL: none */
	struct tag_chunk *chunk;	   /* of this process and its forks; NULL: none yet */
	char path[1024];
};

void tag_journal_open(struct tag_journal *j, const char *table);
void tag_count(struct tag_journal *j, enum tag_count which);
uint64_t tag_counted(const struct tag_journal *j, enum tag_count which);
void tag_note(struct tag_journal *j, struct tag_record record, const char *path);

#endif
