/* SPDX-License-Identifier: Apache-2.0 */
/* The word that identifies a process, and the type of the task to which it belongs. */
#ifndef TRACEHINT_TAG_WORD_H
#define TRACEHINT_TAG_WORD_H

#include "table.h"

#define TAG_LINE 4096 /* bytes of a command line that are read */

struct tag_word {
	const char *text; /* not ended by NUL */
	uint32_t size;	  /* 0: not known */
};

/* Return the word of a command line in the form of /proc: arguments that end with NUL. */
struct tag_word tag_word_of(const char *line, size_t size);

/*
 * Return the type of the task to which a process belongs: of it and its ancestors below the run's
 * own process, the outermost with a word of the table; TAG_UNKNOWN: none. `room`: TAG_LINE bytes.
 */
uint32_t tag_type_of(const struct tag_table *t, uint32_t pid, char *room);

#endif
