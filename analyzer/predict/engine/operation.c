// SPDX-License-Identifier: Apache-2.0
/* Operations of a task, one after the other: metadata service, data, metadata service. Computing
 * that overlaps a read takes only the time by which it is longer than the read. */
#include "sim.h"

#define STEP_OPEN 0 /* step: call the metadata service */
#define STEP_MOVE 1 /* step: the first transfer */

void wait_for(struct sim *m, int32_t slot, enum spent what, double seconds)
{
	m->slot[slot].waits = what;
	m->slot[slot].begun = m->now;
	heap_set(&m->heap, slot, m->now + seconds);
}

/* Call a metadata service, which serves one request after the other; `more`: seconds in client and
 * network; `work`: seconds of the processors, which can be busy. True: it takes time. */
static bool ask(struct sim *m, int32_t slot, int32_t file, double service, double more, double work)
{
	int32_t k = file % (int32_t)set(m, SET_META_SERVERS);

	more += behind_others(m, m->slot[slot].node);
	double from = m->meta_free[k] > m->now ? m->meta_free[k] : m->now;
	double wait = from + service - m->now + set(m, SET_LATENCY) + more;

	m->meta_ops++;
	m->network += set(m, SET_CALL);
	bool waits = service + more > 0;
	if (waits)
		m->meta_free[k] = from + service;
	if (work_begin(m, slot, IN_METADATA, work, 1)) {
		m->slot[slot].until = waits ? m->now + wait : 0;
		return true;
	}
	if (waits)
		wait_for(m, slot, IN_METADATA, wait);
	return waits;
}

static int64_t chunks_between(int64_t start, int64_t end, int64_t chunk)
{
	return end > start ? (end - 1) / chunk - start / chunk + 1 : 0;
}

/* A file is opened by the first and closed by the last of consecutive operations of one kind. */
static bool same_file(const struct workload *w, int32_t task, int64_t a, int64_t b)
{
	return b >= w->op_begin[task] && b < w->op_begin[task + 1] &&
	       w->op_file[a] == w->op_file[b] && w->op_kind[a] == w->op_kind[b];
}

static bool open_file(struct sim *m, int32_t slot)
{
	const struct workload *w = m->w;
	struct slot *s = &m->slot[slot];
	int32_t file = w->op_file[s->op];
	bool writes = w->op_kind[s->op] == OP_WRITE;

	place_file(m, file, s->node);
	if (same_file(w, s->task, s->op, s->op - 1))
		return false;
	int64_t start = w->op_start[s->op], end = start + w->op_length[s->op];
	double chunks = (double)chunks_between(start, end, m->file[file].chunk);
	double service = set(m, writes ? SET_CREATE : SET_OPEN) + chunks * set(m, SET_LOOKUP);
	return ask(m, slot, file, service, set(m, writes ? SET_WRITE_WAIT : SET_READ_WAIT),
		   set(m, SET_FILE_CPU));
}

/* Begin transfer number `step` of the operation. False: there is none, or it takes no time; *last:
 * whether it is the last one. */
static bool begin_move(struct sim *m, int32_t slot, int32_t step, bool *last)
{
	const struct workload *w = m->w;
	struct slot *s = &m->slot[slot];
	int64_t start = w->op_start[s->op], length = w->op_length[s->op],
		bytes = w->op_bytes[s->op];
	struct span span = {.file = w->op_file[s->op],
			    .node = s->node,
			    .start = start,
			    .end = start + length,
			    .bytes = (double)bytes,
			    .writes = w->op_kind[s->op] == OP_WRITE};
	int64_t chunk = m->file[span.file].chunk, n = chunks_between(start, start + length, chunk);
	int64_t window = (int64_t)set(m, SET_WINDOW);

	*last = true;
	if (bytes == 0)
		return false;
	if (step == 0 && !span.writes && span.bytes > set(m, SET_SMALL)) {
		double fetch = join_read(m, slot, &span);

		if (s->leader != NONE) {
			span.bytes = fetch;
			n = 0; /* in one transfer */
			if (fetch < 1)
				return false;
		}
	}
	if (step == 0 && s->leader == NONE && client_has(m, &span))
		return false;
	if (span.bytes <= set(m, SET_SMALL)) {
		double seconds = small_request(m, &span);

		if (seconds > 0)
			wait_for(m, slot, IN_REQUESTS, seconds);
		return seconds > 0;
	}
	/* one window of chunks after the other; many chunks are averaged in one transfer */
	if (n > window && n <= MAX_SERVERS && !in_one_place(m, span.file)) {
		int64_t first = start / chunk + step * window, end = (first + window) * chunk;

		span.start = step ? first * chunk : start;
		span.end = end < start + length ? end : start + length;
		span.bytes = (double)bytes * ((double)(span.end - span.start) / (double)length);
		*last = span.end == start + length;
	}
	s->moves = transfer_begin(m, slot, &span);
	s->sent += span.bytes;
	if (!s->moves && set(m, SET_STREAM) > 0) { /* limited by its own rate only */
		wait_for(m, slot, IN_NETWORK, span.bytes / set(m, SET_STREAM));
		return true;
	}
	return s->moves;
}

/* End of an operation: count the computing that overlaps it as done, at most for its duration.
 * Reads that overlap the same computing do not add up to more than it. */
static void count_overlap(struct sim *m, int32_t slot, int64_t op)
{
	struct slot *s = &m->slot[slot];
	double own = m->w->op_seconds[op] / of_host(m, s->node, HOST_SPEED);
	double most = s->overlap > own ? s->overlap : own;

	s->overlap += m->now - s->op_begun;
	if (s->overlap > most)
		s->overlap = most;
}

/* Return the remaining seconds of the next computing. Computing done during reads was counted as
 * waiting and is now counted as computing. */
static double subtract_overlap(struct sim *m, int32_t slot, double seconds)
{
	static const enum spent waits[] = {IN_NETWORK, IN_DISK, IN_REQUESTS, IN_METADATA};
	struct slot *s = &m->slot[slot];
	double *spent = m->task[s->task].spent;
	double done = s->overlap < seconds ? s->overlap : seconds, rest = done;

	s->overlap -= done;
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		double part = spent[waits[i]] < rest ? spent[waits[i]] : rest;

		spent[waits[i]] -= part;
		spent[IN_COMPUTE] += part;
		rest -= part;
	}
	return seconds - done;
}

/* Continue a read or a write; true: it takes time. */
static bool data_step(struct sim *m, int32_t slot)
{
	const struct workload *w = m->w;
	struct slot *s = &m->slot[slot];
	bool last = true;

	if (s->step == STEP_OPEN) {
		s->op_begun = m->now;
		s->step = STEP_MOVE;
		if (open_file(m, slot))
			return true;
	}
	while (s->step >= STEP_MOVE) {
		bool busy = begin_move(m, slot, s->step - STEP_MOVE, &last);

		s->step = last ? NONE : s->step + 1;
		if (busy)
			return true;
	}
	if (join_wait(m, slot))
		return true;
	if (s->followers > 0)
		join_end(m, slot);
	int64_t op = s->op++;
	s->step = STEP_OPEN;
	s->sent = 0;
	count_overlap(m, slot, op);
	if (w->op_kind[op] != OP_WRITE || same_file(w, s->task, op, op + 1))
		return false;
	return ask(m, slot, w->op_file[op], set(m, SET_CLOSE), 0, 0);
}

bool go_on(struct sim *m, int32_t slot)
{
	const struct workload *w = m->w;
	struct slot *s = &m->slot[slot];

	while (s->op < w->op_begin[s->task + 1]) {
		if (w->op_kind[s->op] != OP_COMPUTE) {
			if (data_step(m, slot))
				return true;
			continue;
		}
		double seconds = w->op_seconds[s->op++] / of_host(m, s->node, HOST_SPEED);
		if (seconds > 0) {
			double cores = cores_of(m, s->task);

			m->host[s->node].busy += seconds * cores;
			seconds = subtract_overlap(m, slot, seconds);
			if (seconds <= 0)
				continue;
			if (work_begin(m, slot, IN_COMPUTE, seconds, w->busy[s->task] * cores))
				return true;
			wait_for(m, slot, IN_COMPUTE, seconds);
			return true;
		}
	}
	return false;
}
