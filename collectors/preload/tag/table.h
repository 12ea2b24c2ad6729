/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule table that `tracehint run` compiles: settings of files by name. Mapped read-only,
 * little-endian, offsets from its start. Its content is not trusted: every offset is checked where
 * it is used. adapters/creation/table_layout.py has the same names.
 */
#ifndef TRACEHINT_TAG_TABLE_H
#define TRACEHINT_TAG_TABLE_H

#include "../th_sys.h"

#define TAG_MAGIC "THTAGS\0\2"
#define TAG_NONE 0xffffffffu
#define TAG_UNASKED 0xfffffffeu /* as a type: not looked up */
#define TAG_UNKNOWN 0xfffffffdu /* as a type: looked up and not found */
#define TAG_ANY_SLASHES 0xffff
#define TAG_PROBES 64
#define TAG_MAX_NAME 4096  /* bytes of a path */
#define TAG_MAX_HOLES 48   /* of a template: MAX_HOLES of hintgen/hints/template.py */
#define TAG_MAX_VALUE 4096 /* bytes of a value, without inserted names */
#define TAG_MAX_GROUP 120  /* characters of a group's name */
#define TAG_WORK 100000	   /* steps for one name: about 1 ms, then TAG_COSTLY */

struct tag_text {
	uint32_t at, size;
};

struct tag_section {
	uint32_t at, count;
};

struct tag_header {
	char magic[8];
	uint32_t size;
	uint32_t run;	/* process that runs the command; its ancestors are not read */
	uint32_t typed; /* 1: some hints depend on the type of the task */
	uint32_t unused;
	struct tag_section roots, exact, combos, buckets, rules, lists, sets, makers;
};

struct tag_exact {
	uint32_t hash, set, type; /* type: of the task that creates the file; TAG_NONE: any */
	struct tag_text name;
};

struct tag_maker { /* a process with this word belongs to a task of this type */
	uint32_t hash, type;
	struct tag_text word;
};

struct tag_combo {
	uint16_t head, tail;
};

struct tag_bucket {
	uint32_t hash;
	uint16_t combo, slashes;
	uint32_t first, count;
};

struct tag_rule {
	struct tag_section parts, excludes;
	struct tag_section types; /* of the tasks whose files it applies to; none: all */
	uint32_t rank, alike, set;
};

struct tag_part {
	uint32_t kind;
	struct tag_text text;
};

struct tag_set {
	uint32_t ways, way_at;
	struct tag_text prefix;
	uint32_t group; /* 0: none; 1: made of the prefix and captures; 2: digits become # */
	uint32_t capture_count, captures;
};

enum { TAG_GROUP = 1, TAG_HOST = 2, TAG_CLASS = 4 };

struct tag_setting {
	struct tag_text key, value, tail;
	uint32_t flags;
};

struct tag_table {
	const char *base;
	uint32_t size;
	const struct tag_header *header;
};

/* Why a name gets no hint; the journal counts them. */
enum tag_answer { TAG_FOUND, TAG_NO_RULE, TAG_CONFLICT, TAG_COSTLY, TAG_DAMAGED };

struct tag_match {
	enum tag_answer answer;
	uint32_t set; /* TAG_NONE: a known name without a hint */
	uint32_t rule, work, caught_count;
	uint32_t type;	    /* of the task that creates the file */
	bool asks;	    /* type is TAG_UNASKED, and the answer may depend on it */
	struct tag_choice { /* match of each placeholder, with its least possible end */
		uint16_t part, start, end, least;
	} caught[TAG_MAX_HOLES + 1];
};

/* tag/table.c */
/* Check the header; false: no table of this version. */
bool tag_use(struct tag_table *t, const void *base, size_t size);
/* Return `count` records of `size` bytes at an offset; NULL: outside the table, or misaligned. */
const void *tag_rows(const struct tag_table *t, uint32_t at, uint32_t count, uint32_t size);
/* Return the path relative to one of the roots, or NULL; `root`: index of that root. */
const char *tag_below(const struct tag_table *t, const char *path, uint32_t *length,
		      uint16_t *root);
/* Find the settings for a file of that name below a root, created by a task of that type. */
void tag_look_up(const struct tag_table *t, const char *name, uint32_t length, uint32_t type,
		 struct tag_match *m);
uint32_t tag_crc(uint32_t crc, const void *data, uint32_t size);

/* tag/fit.c: whether a template matches; m->caught is then the match of its placeholders. */
bool tag_fit(const struct tag_table *t, struct tag_section template, const char *name,
	     uint32_t length, struct tag_match *m);

/* tag/value.c */
/* Return the settings of a matched name, and write its group; NULL: damaged. */
const struct tag_setting *tag_settings(const struct tag_table *t, const struct tag_match *m,
				       const char *name, char *group, uint32_t *count);
/* Write a value to `out` (TAG_MAX_VALUE + TAG_MAX_GROUP + 1); returns its length, -1: damaged. */
long tag_value(const struct tag_table *t, const struct tag_setting *s, const char *group,
	       char *out);

#endif
