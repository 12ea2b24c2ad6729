// SPDX-License-Identifier: Apache-2.0
/* Assignment of ready tasks to nodes. Tasks start in the order in which they became ready: first
 * on their preferred nodes, then tasks without preference, then, if stealing is allowed, any. */
#include "sim.h"

#include <stdlib.h>

#define MAX_LOOKED 64 /* reads of more chunks do not affect the preferred node of a task */

struct queues {
	int32_t *next;	       /* per task: next task with the same preference */
	int32_t *head, *tail;  /* per node; the last entry is for no preference */
	int32_t *order;	       /* all ready tasks */
	int32_t *idle, *where; /* nodes with a free core; index of each node among them */
	int32_t first, last, n_idle, waiting, most;
};

struct queues *queues_new(const struct sim *m)
{
	struct queues *q = zeroed(1, sizeof(*q));
	int32_t n = m->s->hosts;

	q->next = zeroed(m->w->tasks, sizeof(*q->next));
	q->order = zeroed(m->w->tasks, sizeof(*q->order));
	q->head = zeroed(n + 1, sizeof(*q->head));
	q->tail = zeroed(n + 1, sizeof(*q->tail));
	q->idle = zeroed(n, sizeof(*q->idle));
	q->where = zeroed(n, sizeof(*q->where));
	for (int32_t i = 0; i <= n; i++)
		q->head[i] = q->tail[i] = NONE;
	for (int32_t i = 0; i < n; i++) {
		q->where[i] = NONE;
		if (of_host(m, i, HOST_CORES) > q->most)
			q->most = (int32_t)of_host(m, i, HOST_CORES);
	}
	return q;
}

void queues_free(struct queues *q)
{
	if (!q)
		return;
	free(q->next);
	free(q->order);
	free(q->head);
	free(q->tail);
	free(q->idle);
	free(q->where);
	free(q);
}

/* A task that requests more cores than any node has gets a whole node of the largest size. */
int32_t cores_of(const struct sim *m, int32_t task)
{
	int32_t wanted = m->w->cores[task];

	return wanted < m->queues->most ? wanted : m->queues->most;
}

void node_changed(struct sim *m, int32_t node)
{
	struct queues *q = m->queues;

	if (m->host[node].free > 0 && q->where[node] == NONE) {
		q->where[node] = q->n_idle;
		q->idle[q->n_idle++] = node;
	} else if (m->host[node].free == 0 && q->where[node] != NONE) {
		int32_t last = q->idle[--q->n_idle];

		q->idle[q->where[node]] = last;
		q->where[last] = q->where[node];
		q->where[node] = NONE;
	}
}

static void add_scores(struct sim *m, int32_t file, int64_t start, int64_t length, double bytes)
{
	int64_t chunk = m->file[file].chunk, first = start / chunk;
	int64_t n =
		in_one_place(m, file) || length <= 0 ? 1 : (start + length - 1) / chunk - first + 1;

	if (n > MAX_LOOKED)
		return;
	for (int64_t c = first; c < first + n; c++)
		for (int32_t k = 0; k < m->file[file].copies; k++)
			m->score[m->s->server[server_of(m, file, c, k)]] += bytes / (double)n;
}

/* Return the node with most bytes of the task's input; ties: the one with more free cores. */
static int32_t preferred(struct sim *m, int32_t task)
{
	const struct workload *w = m->w;
	int32_t best = NONE, n = m->s->hosts, turn = draw(m, n);

	for (int64_t i = w->op_begin[task]; i < w->op_begin[task + 1]; i++)
		if (w->op_kind[i] == OP_READ && m->file[w->op_file[i]].placed)
			add_scores(m, w->op_file[i], w->op_start[i], w->op_length[i],
				   (double)w->op_bytes[i]);
	for (int32_t k = 0; k < n; k++) {
		int32_t i = k + turn < n ? k + turn : k + turn - n;

		if (m->score[i] <= 0 || of_host(m, i, HOST_CORES) < 1)
			continue;
		if (best == NONE || m->score[i] > m->score[best] * (1 + 1e-9) ||
		    (m->score[i] > m->score[best] * (1 - 1e-9) &&
		     m->host[i].free > m->host[best].free))
			best = i;
	}
	for (int32_t i = 0; i < n; i++)
		m->score[i] = 0;
	return best;
}

void make_ready(struct sim *m, int32_t task)
{
	struct queues *q = m->queues;
	int32_t node = NONE;

	m->task[task].ready = m->now;
	m->task[task].node = NONE;
	q->waiting++;
	if (set(m, SET_SCHEDULER) == BY_PLAN && m->s->plan)
		node = m->s->plan[task];
	if (node == NONE || set(m, SET_STEAL) != STEAL_UNPLANNED)
		q->order[q->last++] = task;
	if (node == NONE && set(m, SET_SCHEDULER) != BY_CHANCE)
		node = preferred(m, task);
	if (node < 0 || of_host(m, node, HOST_CORES) < 1)
		node = m->s->hosts;
	q->next[task] = NONE;
	if (q->head[node] == NONE)
		q->head[node] = task;
	else
		q->next[q->tail[node]] = task;
	q->tail[node] = task;
}

/* Return the first task of a queue that has not started elsewhere; it remains queued until then. */
static int32_t first_of(struct sim *m, int32_t node)
{
	struct queues *q = m->queues;

	while (q->head[node] != NONE && m->task[q->head[node]].node != NONE)
		q->head[node] = q->next[q->head[node]];
	return q->head[node];
}

/* Return a random node, or the first one, with enough free cores; NONE: there is none. */
static int32_t any_idle(struct sim *m, int32_t cores)
{
	struct queues *q = m->queues;
	bool fills = set(m, SET_FILL) > 0;
	int32_t from = fills ? 0 : draw(m, q->n_idle), found = NONE;

	for (int32_t i = 0; i < q->n_idle && (fills || found == NONE); i++) {
		int32_t node = q->idle[(from + i) % q->n_idle];

		if (m->host[node].free >= cores && (found == NONE || node < found))
			found = node;
	}
	return found;
}

static bool start_if_idle(struct sim *m, int32_t task)
{
	int32_t node = task == NONE ? NONE : any_idle(m, cores_of(m, task));

	if (node == NONE)
		return false;
	m->queues->waiting--;
	start_task(m, task, node);
	return true;
}

/* Start the tasks that prefer a node on it, for all idle nodes. */
static void start_preferred(struct sim *m)
{
	struct queues *q = m->queues;

	for (int32_t i = q->n_idle - 1; i >= 0; i--) {
		int32_t node = q->idle[i], task;

		while ((task = first_of(m, node)) != NONE &&
		       m->host[node].free >= cores_of(m, task)) {
			q->waiting--;
			start_task(m, task, node);
		}
	}
}

void dispatch(struct sim *m)
{
	struct queues *q = m->queues;

	if (!q->waiting || !q->n_idle)
		return;
	if (set(m, SET_SCHEDULER) != BY_CHANCE)
		start_preferred(m);
	while (q->waiting && q->n_idle && start_if_idle(m, first_of(m, m->s->hosts)))
		;
	while (q->waiting && q->n_idle && set(m, SET_STEAL) != STEAL_NOTHING) {
		while (q->first < q->last && m->task[q->order[q->first]].node != NONE)
			q->first++;
		if (q->first == q->last || !start_if_idle(m, q->order[q->first]))
			break;
	}
}
