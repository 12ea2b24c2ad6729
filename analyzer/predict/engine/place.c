// SPDX-License-Identifier: Apache-2.0
/* Location of the bytes of a file: a formula per file, so that memory use does not depend on the
 * number of chunks. */
#include "sim.h"

uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

int32_t draw(struct sim *m, int32_t below)
{
	m->random = mix(m->random);
	return (int32_t)(m->random % (uint64_t)below);
}

static int64_t chunks_of(const struct sim *m, int32_t file)
{
	int64_t chunk = m->file[file].chunk, size = m->w->size[file];

	return size > 0 ? (size - 1) / chunk + 1 : 0;
}

static int32_t group_server(struct sim *m, int32_t group, int32_t node)
{
	if (m->group[group] == NONE) {
		int32_t own = node == NONE ? NONE : m->server_on[node];

		m->group[group] =
			own != NONE ? own : (int32_t)(m->rotate++ % (int64_t)set(m, SET_POOL));
	}
	return m->group[group];
}

/* Return the first server of a file that a task on `node` creates, or of an input (NONE). */
static int64_t first_server(struct sim *m, int32_t file, int32_t node)
{
	struct file_state *f = &m->file[file];
	int32_t target = m->s->target ? m->s->target[file] : NONE;
	int32_t at = f->law == LAW_NODE ? target : node;
	int64_t first;

	if (f->law == LAW_ONE)
		return 0;
	if (f->law == LAW_GROUP)
		return group_server(m, target, node);
	if (f->law == LAW_LOCAL || f->law == LAW_NODE) {
		if (at != NONE && m->server_on[at] != NONE)
			return m->server_on[at];
		f->law = LAW_ROTATE; /* no server there */
	}
	if (f->law == LAW_RANDOM)
		return 0;
	first = m->rotate;
	m->rotate += f->law == LAW_ROTATE ? chunks_of(m, file) : (int64_t)set(m, SET_WIDTH);
	return first;
}

void place_file(struct sim *m, int32_t file, int32_t node)
{
	const struct scenario *s = m->s;
	struct file_state *f = &m->file[file];

	if (f->placed)
		return;
	f->placed = true;
	f->law = s->law && s->law[file] != NONE ? s->law[file] : (int32_t)set(m, SET_LAW);
	f->copies = s->copies && s->copies[file] ? s->copies[file] : (int32_t)set(m, SET_COPIES);
	f->chunk = s->chunk && s->chunk[file] ? s->chunk[file] : (int64_t)set(m, SET_CHUNK);
	if (f->copies > s->servers)
		f->copies = s->servers;
	f->base = first_server(m, file, node);
	if (!in_one_place(m, file) && f->copies > (int32_t)set(m, SET_POOL))
		f->copies = (int32_t)set(m, SET_POOL);
	f->warm = 0;
}

/* Place the inputs of the run: all files that no task produces. */
void place_init(struct sim *m)
{
	m->rotate = (int64_t)(mix((uint64_t)set(m, SET_SEED)) % (uint64_t)set(m, SET_POOL));
	for (int32_t i = 0; i < m->s->groups; i++)
		m->group[i] = NONE;
	for (int32_t i = 0; i < m->w->files; i++) {
		if (m->w->produced[i])
			continue;
		place_file(m, i, NONE);
		m->file[i].warm = set(m, SET_WARM) > 0 ? (double)m->w->size[i] : 0;
	}
}

bool in_one_place(const struct sim *m, int32_t file)
{
	const struct file_state *f = &m->file[file];

	return f->law == LAW_LOCAL || f->law == LAW_ONE || f->law == LAW_NODE ||
	       f->law == LAW_GROUP || m->s->servers == 1;
}

int64_t period(const struct sim *m, int32_t file)
{
	int64_t width = (int64_t)set(m, SET_WIDTH), pool = (int64_t)set(m, SET_POOL);

	if (in_one_place(m, file))
		return 1;
	if (m->file[file].law == LAW_RANDOM)
		return 0;
	return m->file[file].law == LAW_STRIPE && width < pool ? width : pool;
}

int32_t server_of(const struct sim *m, int32_t file, int64_t chunk, int32_t copy)
{
	const struct file_state *f = &m->file[file];
	int32_t servers = m->s->servers, width = (int32_t)set(m, SET_WIDTH);
	uint64_t salt = (uint64_t)set(m, SET_SEED) << 32 ^ (uint64_t)file;
	uint64_t first = (uint64_t)f->base;

	if (in_one_place(m, file)) /* further copies at random servers */
		return copy == 0 ? (int32_t)(first % servers)
				 : (int32_t)((first + 1 + (mix(salt) + copy - 1) % (servers - 1)) %
					     servers);
	servers = (int32_t)set(m, SET_POOL);
	if (f->law == LAW_RANDOM)
		first = mix(salt ^ mix((uint64_t)chunk));
	else if (f->law == LAW_STRIPE)
		first += (uint64_t)(chunk % (width < servers ? width : servers));
	else
		first += (uint64_t)chunk;
	return (int32_t)((first % (uint64_t)servers + (uint64_t)copy) % (uint64_t)servers);
}

int32_t copy_for(const struct sim *m, int32_t file, int64_t chunk, int32_t node)
{
	int32_t copies = m->file[file].copies;

	if (copies < 2 || set(m, SET_ONE_COPY) > 0)
		return 0;
	for (int32_t i = 0; i < copies; i++)
		if (m->s->server[server_of(m, file, chunk, i)] == node)
			return i;
	uint64_t key = ((uint64_t)node << 32 ^ (uint64_t)file) + mix((uint64_t)chunk);
	return (int32_t)(mix(key) % (uint64_t)copies);
}
