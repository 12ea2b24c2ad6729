// SPDX-License-Identifier: Apache-2.0
/* Memory as a cache: of the servers, of writes to their disks, and of the clients.
 *
 * Cached bytes are evicted after as many further bytes as the memory holds: this needs one counter
 * per host instead of a list of pages.
 */
#include "sim.h"

/* Return the host that represents all servers of a file. */
static int32_t host_of(const struct sim *m, int32_t file)
{
	return m->s->server[server_of(m, file, 0, 0)];
}

bool server_has(struct sim *m, const struct span *s)
{
	const struct file_state *f = &m->file[s->file];
	int32_t host = host_of(m, s->file);

	return f->warm + 1 > (double)m->w->size[s->file] &&
	       m->host[host].cached - f->stamp <= of_host(m, host, HOST_CACHE);
}

void server_keeps(struct sim *m, const struct span *s)
{
	struct file_state *f = &m->file[s->file];
	int32_t host = host_of(m, s->file);
	double size = (double)m->w->size[s->file], servers = 1;

	if (!in_one_place(m, s->file)) {
		servers = size / (double)f->chunk;
		servers = servers < 1 ? 1 : servers > m->s->servers ? m->s->servers : servers;
	}
	if (f->warm + 1 > size || f->warm <= 0)
		f->stamp = m->host[host].cached;
	if (f->warm + 1 > size) /* it was evicted, or is written again */
		f->warm = 0;
	f->warm += s->bytes;
	m->host[host].cached += s->bytes / servers;
}

/* Whether a server can buffer these bytes in memory and write them to its disk later. */
bool buffered(struct sim *m, int32_t host, double bytes)
{
	struct host_state *h = &m->host[host];
	double room = of_host(m, host, HOST_DIRTY), rate = of_host(m, host, HOST_WRITE);

	h->dirty -= rate * (m->now - h->dirty_at);
	h->dirty_at = m->now;
	if (h->dirty < 0)
		h->dirty = 0;
	if (h->dirty + bytes > room)
		return false;
	h->dirty += bytes;
	return true;
}

/* Whether the reader's own node still caches the span; reads and writes are cached from now on. */
bool client_has(struct sim *m, const struct span *s)
{
	if (set(m, SET_CLIENT_CACHE) <= 0)
		return false;
	uint64_t key = ((uint64_t)s->node + 1) << 32 | (uint64_t)s->file;
	struct entry *e = seen_at(m->seen, key);
	struct host_state *h = &m->host[s->node];
	bool has = e->bytes + 1 > s->bytes && s->bytes > 0 &&
		   h->client_cached - e->stamp <= of_host(m, s->node, HOST_CACHE);

	if (has && !s->writes)
		return true;
	if (s->writes && set(m, SET_CACHE_WRITES) <= 0) {
		e->bytes = 0; /* cached bytes are of an older version */
		return false;
	}
	e->bytes = s->bytes;
	e->stamp = h->client_cached;
	h->client_cached += s->bytes;
	return false;
}
