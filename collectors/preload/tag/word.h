/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes a file: the word of a process, and the type of the task that it belongs to. */
#ifndef TRACEHINT_TAG_WORD_H
#define TRACEHINT_TAG_WORD_H

#include "table.h"

#define TAG_LINE 4096 /* bytes of a command line that are looked at */

struct tag_word {
	const char *text; /* not ended by NUL */
	uint32_t size;	  /* 0: nothing tells it */
};

/* The word of a command line as /proc has it: words that end with NUL. */
struct tag_word tag_word_of(const char *line, size_t size);

/*
 * The type of the task that a process belongs to: that of the outermost of its ancestors, below the
 * run's own process, whose word is one of the table's; TAG_UNKNOWN: none is. `room`: TAG_LINE bytes.
 */
uint32_t tag_type_of(const struct tag_table *t, uint32_t pid, char *room);

#endif
