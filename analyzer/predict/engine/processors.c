// SPDX-License-Identifier: Apache-2.0
/* Hosts that share the processors of one machine: work of tasks and of the store as fluids.
 *
 * Work is expressed in bytes whose transfer would use as much processor time, so that max-min
 * fairness treats work and transfers alike. A lane per slot limits work to its own processors.
 */
#include "sim.h"

#define USUAL_UNIT 1e8 /* bytes per second, if the processor cost of transfers is unknown */
#define MOST_UNIT 1e12

static bool shared(const struct sim *m)
{
	for (int32_t k = 0; k < m->s->machines; k++)
		if (m->s->processors[k] > 0)
			return true;
	return false;
}

static int32_t machine_of(const struct sim *m, int32_t host)
{
	return (int32_t)of_host(m, host, HOST_MACHINE);
}

void processors_init(struct sim *m)
{
	double cost = set(m, SET_CLIENT_CPU) + set(m, SET_SERVER_CPU), most = 1;

	m->unit = cost > 1 / MOST_UNIT ? 1 / cost : USUAL_UNIT;
	for (int32_t i = 0; shared(m) && i < m->w->tasks; i++)
		if (most < cores_of(m, i))
			most = cores_of(m, i);
	/* the rate limit of a single transfer must not limit the processors of a task */
	if (set(m, SET_STREAM) > 0 && set(m, SET_STREAM) / most < m->unit)
		m->unit = set(m, SET_STREAM) / most;
	for (int32_t k = 0; k < m->s->machines; k++)
		m->fluid.res[m->machine_base + k].capacity = m->s->processors[k];
}

int32_t lanes_for(const struct sim *m)
{
	return shared(m) ? m->slots : 0;
}

void machine_use(struct sim *m, int32_t slot, int32_t machine, double seconds)
{
	flow_use(&m->fluid, slot, m->machine_base + machine, seconds);
}

void processors_use(struct sim *m, int32_t slot, int32_t host, double seconds)
{
	machine_use(m, slot, machine_of(m, host), seconds);
}

bool work_begin(struct sim *m, int32_t slot, enum spent what, double seconds, double processors)
{
	int32_t node = m->slot[slot].node, lane = m->lane_base + slot;

	if (seconds <= 0 || processors <= 0 || m->s->processors[machine_of(m, node)] <= 0)
		return false;
	m->fluid.flow[slot].legs = 0;
	m->fluid.res[lane].capacity = processors * m->unit;
	processors_use(m, slot, node, 1 / m->unit);
	flow_use(&m->fluid, slot, lane, 1);
	m->slot[slot].waits = what;
	m->slot[slot].moves = m->slot[slot].works =
		flow_begin(&m->fluid, slot, seconds * processors * m->unit, m->now);
	return m->slot[slot].works;
}
