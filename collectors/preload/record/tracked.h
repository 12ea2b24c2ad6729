/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapped files of which the pages that were used are told (tracked.c): what it is told by
 * settle.c, pages.c and reclaim.c.
 */
#ifndef TRACEHINT_TRACKED_H
#define TRACEHINT_TRACKED_H

#include "process.h"

#define TH_TRACKED 64
#define TH_AROUND 65536UL /* bytes that one fault brings in: smaller mappings are no better told */
/*
 * Private ones that are smaller stay ranges: every program in a language of its own maps a table of
 * 345 KiB, and to look at a mapping is 60 microseconds of a program that runs for 1,000.
 */
#define TH_PRIVATE (512UL << 10)
/*
 * A page of a mapping that is watched faults alone: a microsecond to read it (beside 0.03 to 0.15),
 * five to ten to write it where a large folio would have been mapped at once. So 4 MiB are watched
 * at most, and of one process some 8,192 such faults: less than 10 ms of reads, 80 ms of writes.
 */
#define TH_WATCHED_PAGES 1024
#define TH_FAULTS 8192
#define TH_LOOKS 1024 /* at mappings of one process: each takes some 20 microseconds */

#define TH_NOT_LOOKED (~0UL)

enum tracked_state { TRACKED_FREE, TRACKED_BUSY, TRACKED_USED };

struct tracked {
	unsigned int state; /* who makes it BUSY may change the rest */
	struct mapping
		map; /* its episode counts this mapping alone; inherited: that of the parent */
	unsigned long long when, reclaims; /* when it was mapped, or inherited */
	unsigned long pages; /* that were used when it was looked at last, or TH_NOT_LOOKED */
	bool watched;	     /* with userfaultfd: pages fault alone */
	bool inherited;
	struct th_episode fresh; /* what replaces the bound */
};

/* Kept by a child by fork. */
struct tracker {
	long watch; /* descriptor of userfaultfd; below 0: none */
	unsigned long long watch_ino;
	unsigned int faults, looks; /* that are left */
	struct tracked maps[TH_TRACKED];
};
extern struct tracker *tracker; /* NULL: this program maps no file that is tracked */

/* tracked.c */
bool tracks(const struct rec *rec);
bool track_claim(struct tracked *t);
void track_release(struct tracked *t, enum tracked_state state);
void track_bound(struct rec *rec, const struct tracked *t, struct th_episode *ep, bool read,
		 bool written);

/* pages.c */
struct spans {
	int fd;		   /* of /proc/self/pagemap */
	bool written;	   /* pages that were written; all that were used otherwise */
	bool watched;	   /* only what is still watched */
	unsigned int most; /* pages; 0: all */
};
typedef void (*span_found)(void *with, unsigned long at, unsigned long end);
bool pages_watch(unsigned long at, unsigned long len);
void pages_unwatch(unsigned long at, unsigned long len);
void pages_inherited(void);
int pages_open(void);
long pages_spans(const struct spans *which, const struct mapping *m, span_found found, void *with);

/* reclaim.c */
struct reclaims {
	unsigned long long looked, most; /* pages, since the node began; more may be too many */
};
void reclaims_now(struct reclaims *now);
unsigned long long reclaims_known(void);
bool reclaimed_since(unsigned long long then, const struct reclaims *now);

/* settle.c */
void track_settle(struct rec *rec, struct tracked *t, int pagemap, bool reclaimed);

#endif
