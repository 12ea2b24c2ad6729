// SPDX-License-Identifier: Apache-2.0
/* The answer to a scenario: doubles, in the order that analyzer/predict/simulator.py reads. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

static int put(const double *values, size_t count)
{
	return fwrite(values, sizeof(*values), count, stdout) == count ? 0 : -1;
}

static int put_hosts(const struct sim *m)
{
	for (int32_t i = 0; i < m->s->hosts; i++) {
		const struct host_state *h = &m->host[i];
		bool serves = m->server_on[i] != NONE;
		double n = m->s->servers, out = h->out + (serves ? m->pool_out / n : 0);
		double in = h->in + (serves ? m->pool_in / n : 0);
		double row[] = {out, in, h->disk, h->busy, h->net, h->store};

		if (put(row, sizeof(row) / sizeof(*row)))
			return -1;
	}
	return 0;
}

/* Write per type of task: first start, last end, number, seconds of each kind. */
static int put_types(const struct sim *m)
{
	double *rows = zeroed((size_t)m->w->types * (3 + SPENT), sizeof(*rows));
	int failed = 0;

	for (int32_t i = 0; i < m->w->tasks; i++) {
		const struct task_state *t = &m->task[i];
		double *row = rows + (size_t)m->w->type[i] * (3 + SPENT);

		if (row[2] == 0 || t->start < row[0])
			row[0] = t->start;
		if (t->end > row[1])
			row[1] = t->end;
		row[2]++;
		for (int k = 0; k < SPENT; k++)
			row[3 + k] += t->spent[k];
	}
	failed = put(rows, (size_t)m->w->types * (3 + SPENT));
	free(rows);
	return failed;
}

static int put_tasks(const struct sim *m)
{
	for (int32_t i = 0; i < m->w->tasks; i++) {
		const struct task_state *t = &m->task[i];
		double row[] = {t->node, t->cause, t->ready, t->start, t->end};

		if (put(row, sizeof(row) / sizeof(*row)) || put(t->spent, SPENT))
			return -1;
	}
	return 0;
}

int answer(const struct sim *m)
{
	double head[] = {m->now, m->network, (double)m->meta_ops, m->done, m->crossed};

	if (put(head, sizeof(head) / sizeof(*head)) || put_hosts(m) || put_types(m))
		return -1;
	return set(m, SET_DETAIL) > 0 ? put_tasks(m) : 0;
}
