/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of io_uring that this process made, and its requests that are not answered yet. */
#ifndef TRACEHINT_URING_H
#define TRACEHINT_URING_H

#include <linux/io_uring.h>
#include "record.h"

#define URING_REQUESTS 1024 /* of one ring, not answered at one moment */
#define URING_FILES 1024    /* that a ring has by number */
#define URING_TAGS 256

enum request_kind { REQUEST_NONE, REQUEST_OTHER, REQUEST_COUNTED, REQUEST_MOVES };

struct request {
	unsigned long long tag; /* user_data: of the answer too */
	unsigned long long start;
	struct th_episode *ep; /* NULL: a pipe */
	int fd;		       /* -1: of the ring's own files */
	unsigned int len;      /* 0: not known */
	unsigned char kind;
	unsigned char code; /* of the request */
	unsigned char op;   /* enum th_op */
	unsigned char append;
};

struct ring {
	int fd;
	unsigned int busy;
	const struct io_uring_sqe *sqes;
	const unsigned int *sq_head, *sq_tail, *sq_array; /* no array: in turn */
	const unsigned int *cq_tail;
	const char *cqes;
	unsigned int sq_mask, cq_entries, cqe_size;
	bool polled; /* the kernel takes requests without a call (SQPOLL) */
	bool missed; /* some were overwritten: their answers may be taken for those of others */
	struct {
		void *at;
		size_t bytes;
	} maps[3];
	unsigned int first, noted;	 /* places of requests that are not answered: from, to */
	unsigned int seen;		 /* answers */
	unsigned int waiting;		 /* requests */
	unsigned short tags[URING_TAGS]; /* how many of them, by their tag's hash */
	struct th_episode *files[URING_FILES];
	struct request requests[URING_REQUESTS];
};

/* uring_answers.c; the ring is held */
void uring_note(struct rec *rec, struct ring *ring, unsigned int most);
void uring_note_polled(struct rec *rec, struct ring *ring);
void uring_answers(struct rec *rec, struct ring *ring);
void uring_unsubmitted(struct ring *ring);
void count_request(struct rec *rec, unsigned int code);

#endif
