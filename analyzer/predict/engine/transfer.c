// SPDX-License-Identifier: Apache-2.0
/* Transfers of one operation: the links, disks and memories that its bytes pass. */
#include "sim.h"

#define FULL_LINK 0.98	       /* used share of a link from which requests queue for it */
#define REQUEST_BYTES 131072.0 /* bytes per request of a client */

static int32_t on_host(int32_t host, enum resource_kind kind)
{
	return host * HOST_KINDS + (int32_t)kind;
}

static bool full(const struct sim *m, int32_t node, enum resource_kind link)
{
	const struct resource *r = &m->fluid.res[on_host(node, link)];

	return r->capacity > 0 && r->used >= FULL_LINK * r->capacity;
}

double behind_others(const struct sim *m, int32_t node)
{
	return full(m, node, R_IN) || full(m, node, R_OUT) ? set(m, SET_BUSY) : 0;
}

/* Move `share` of the bytes from one host to another, or locally if both are the same. */
static void hop(struct sim *m, int32_t slot, int32_t from, int32_t to, double share, double bytes)
{
	if (from == to) {
		flow_use(&m->fluid, slot, on_host(to, R_LOCAL), share);
		return;
	}
	flow_use(&m->fluid, slot, on_host(from, R_OUT), share);
	flow_use(&m->fluid, slot, on_host(to, R_IN), share);
	processors_use(m, slot, from, share * set(m, SET_LINK_CPU));
	processors_use(m, slot, to, share * set(m, SET_LINK_CPU));
	if (site_of(m, from) != site_of(m, to)) {
		flow_use(&m->fluid, slot, m->site_base + 2 * site_of(m, from), share);
		flow_use(&m->fluid, slot, m->site_base + 2 * site_of(m, to) + 1, share);
		m->crossed += share * bytes;
	}
	m->host[from].out += share * bytes;
	m->host[to].in += share * bytes;
	m->network += share * bytes;
}

static void disk(struct sim *m, int32_t slot, int32_t host, bool writes, double share, double bytes)
{
	double rate = of_host(m, host, writes ? HOST_WRITE : HOST_READ);

	if (rate <= 0 || (writes && buffered(m, host, share * bytes)))
		return;
	flow_use(&m->fluid, slot, on_host(host, R_DISK), share / rate);
	m->host[host].disk += share * bytes;
}

/* Transfer one chunk, or all of a file in one place. Writes go from copy to copy, reads come from
 * one copy; if that is on the reader's node, the share `away` comes from another copy. */
static void chunk_use(struct sim *m, int32_t slot, const struct span *s, int64_t chunk,
		      double share, double away, bool cached)
{
	int32_t from = s->node, copies = s->writes ? m->file[s->file].copies : 1;
	int32_t copy = s->writes ? 0 : copy_for(m, s->file, chunk, s->node);

	for (int32_t i = 0; i < copies; i++) {
		int32_t host = m->s->server[server_of(m, s->file, chunk, copy + i)];

		if (!s->writes && host == s->node && away > 0) {
			int32_t next = server_of(m, s->file, chunk, copy + 1);

			hop(m, slot, m->s->server[next], s->node, share * away, s->bytes);
			hop(m, slot, host, s->node, share * (1 - away), s->bytes);
		} else if (s->writes)
			hop(m, slot, from, host, share, s->bytes);
		else
			hop(m, slot, host, s->node, share, s->bytes);
		processors_use(m, slot, host, share * set(m, SET_SERVER_CPU));
		if (!cached)
			disk(m, slot, host, s->writes, share, s->bytes);
		from = host;
	}
}

/* Count the servers of chunks [first, last), at most to MAX_SERVERS + 1. */
static int32_t servers_of(const struct sim *m, const struct span *s, int64_t first, int64_t last)
{
	int32_t found[MAX_SERVERS], n = 0, copies = s->writes ? m->file[s->file].copies : 1;

	for (int64_t c = first; c < last; c++) {
		int32_t copy = s->writes ? 0 : copy_for(m, s->file, c, s->node);

		for (int32_t k = copy; k < copy + copies; k++) {
			int32_t server = server_of(m, s->file, c, k), i = 0;

			while (i < n && found[i] != server)
				i++;
			if (i == n && n == MAX_SERVERS)
				return MAX_SERVERS + 1;
			if (i == n)
				found[n++] = server;
		}
	}
	return n;
}

/* Use the links between sites for bytes to or from all servers evenly; `all`: bytes that leave a
 * machine. With more than MAX_SITE_LEGS sites, only the link of the node's own site is used. */
static void sites_use(struct sim *m, int32_t slot, const struct span *s, double all)
{
	int32_t sites = m->s->sites, own = site_of(m, s->node), n = m->s->servers;
	double others = n - (m->server_on[s->node] != NONE), away = n - m->servers_at[own];

	if (away <= 0 || others <= 0)
		return;
	flow_use(&m->fluid, slot, m->site_base + 2 * own + !s->writes, all * away / others);
	m->crossed += all * away / others * s->bytes;
	for (int32_t i = 0; sites <= MAX_SITE_LEGS && i < sites; i++)
		if (i != own)
			flow_use(&m->fluid, slot, m->site_base + 2 * i + s->writes,
				 all * m->servers_at[i] / others);
}

/* Use processors for bytes to or from all servers evenly; with more than MAX_SITE_LEGS machines,
 * only those of the client. */
static void machines_use(struct sim *m, int32_t slot, const struct span *s, double remote,
			 double copies, double all)
{
	double serving =
		copies * set(m, SET_SERVER_CPU) + (2 * all - remote) * set(m, SET_LINK_CPU);

	processors_use(m, slot, s->node, remote * set(m, SET_LINK_CPU));
	for (int32_t k = 0; m->s->machines <= MAX_SITE_LEGS && k < m->s->machines; k++)
		machine_use(m, slot, k, serving * m->servers_in[k] / m->s->servers);
}

/* Transfer bytes to or from all servers evenly: one resource represents all their links, one all
 * their disks. */
static void pool_use(struct sim *m, int32_t slot, const struct span *s, bool cached)
{
	struct fluid *f = &m->fluid;
	int32_t n = (int32_t)set(m, SET_POOL);
	int32_t own = m->server_on[s->node] < n ? m->server_on[s->node] : NONE;
	double held = m->file[s->file].copies, copies = s->writes ? held : 1;
	double near = s->writes || set(m, SET_ONE_COPY) > 0 ? 1 : held;
	/* a reader uses the copy on its own node; a writer's first copy can be anywhere */
	double remote = own == NONE ? 1 : 1 - near / n, all;

	if (near > 1)
		remote += (1 - remote) * set(m, SET_SPREAD);
	all = remote + copies - 1;

	flow_use(f, slot, on_host(s->node, s->writes ? R_OUT : R_IN), remote);
	flow_use(f, slot, on_host(s->node, R_LOCAL), 1 - remote);
	flow_use(f, slot, m->pools + (s->writes ? POOL_IN : POOL_OUT), all);
	/* where clients and servers share their links, the client's side fills them as well */
	if (own != NONE || copies > 1)
		flow_use(f, slot, m->pools + (s->writes ? POOL_OUT : POOL_IN),
			 own != NONE ? all : copies - 1);
	sites_use(m, slot, s, all);
	machines_use(m, slot, s, remote, copies, all);
	m->network += all * s->bytes;
	*(s->writes ? &m->host[s->node].out : &m->host[s->node].in) += remote * s->bytes;
	m->pool_in += s->writes ? all * s->bytes : 0;
	m->pool_out += (s->writes ? copies - 1 : remote) * s->bytes;
	if (cached || (s->writes && buffered(m, m->s->server[0], s->bytes * copies / n)))
		return;
	double rate = of_host(m, m->s->server[0], s->writes ? HOST_WRITE : HOST_READ);
	if (rate > 0)
		flow_use(f, slot, m->pools + POOL_DISK, copies / rate);
}

/* Count the time in which a host's links and its store are in use, for the energy. */
static void in_use(struct sim *m, int32_t slot, int32_t change)
{
	const struct flow *flow = &m->fluid.flow[slot];

	for (int32_t i = 0; i < flow->legs; i++) {
		int32_t host = flow->leg[i].resource / HOST_KINDS;
		int32_t kind = flow->leg[i].resource % HOST_KINDS;

		if (host >= m->s->hosts)
			continue;
		struct host_state *h = &m->host[host];
		bool link = kind == R_OUT || kind == R_IN;
		bool store = link ? host != m->slot[slot].node : kind != R_CLIENT;

		h->net += h->n_net ? m->now - h->net_since : 0;
		h->store += h->n_store ? m->now - h->store_since : 0;
		h->net_since = h->store_since = m->now;
		h->n_net += link ? change : 0;
		h->n_store += store ? change : 0;
	}
}

/* Return the share of a read that comes from other copies although the own node has one: the first
 * request goes to the own copy; the next SET_FIRST bytes come evenly from all copies. */
static double away_of(const struct sim *m, const struct span *s)
{
	double copies = m->file[s->file].copies, shared = set(m, SET_SPREAD);
	double more = s->bytes - REQUEST_BYTES, any = set(m, SET_FIRST);

	if (copies < 2 || s->writes || set(m, SET_ONE_COPY) > 0)
		return 0;
	if (more <= 0 || any <= 0)
		return shared;
	any = any < more ? any : more;
	return (any * (copies - 1) / copies + (more - any) * shared) / s->bytes;
}

/* Transfer the span by chunks [first, last), each with its own bytes, or with equal shares. */
static void chunks_use(struct sim *m, int32_t slot, const struct span *s, int64_t first,
		       int64_t last, bool alike, bool cached)
{
	int64_t size = m->file[s->file].chunk;
	double whole = (double)(s->end - s->start);
	/* two servers per chunk: more chunks would use too many resources */
	bool few = last - first <= MAX_SERVERS / 2 && m->file[s->file].copies > 1;
	double away = few ? away_of(m, s) : 0;

	for (int64_t c = first; c < last; c++) {
		int64_t from = c * size, to = from + size;

		from = from < s->start ? s->start : from;
		to = to > s->end ? s->end : to;
		double share = alike ? 1.0 / (double)(last - first) : (double)(to - from) / whole;
		chunk_use(m, slot, s, c, share, away, cached);
	}
}

bool transfer_begin(struct sim *m, int32_t slot, const struct span *s)
{
	int64_t size = m->file[s->file].chunk, turn = period(m, s->file);
	int64_t first = s->start / size,
		last = s->end > s->start ? (s->end - 1) / size + 1 : first + 1;
	bool cached = !s->writes && server_has(m, s), alike = last == first + 1;

	m->fluid.flow[slot].legs = 0;
	if (turn && last - first > turn) {
		last = first + turn;
		alike = true;
	}
	if (last - first > MAX_SERVERS || servers_of(m, s, first, last) > MAX_SERVERS)
		pool_use(m, slot, s, cached);
	else
		chunks_use(m, slot, s, first, last, alike, cached);
	flow_use(&m->fluid, slot, on_host(s->node, R_CLIENT), 1);
	flow_use(&m->fluid, slot, m->pools + POOL_SHARED, 1);
	processors_use(m, slot, s->node, set(m, SET_CLIENT_CPU));
	if (!cached)
		server_keeps(m, s);
	if (!flow_begin(&m->fluid, slot, s->bytes, m->now))
		return false;
	in_use(m, slot, 1);
	return true;
}

void transfer_end(struct sim *m, int32_t slot)
{
	in_use(m, slot, -1);
	flow_end(&m->fluid, slot);
}

double small_request(struct sim *m, const struct span *s)
{
	int64_t chunk = s->start / m->file[s->file].chunk;
	int32_t copies = s->writes ? m->file[s->file].copies : 1;
	int32_t first = s->writes ? 0 : copy_for(m, s->file, chunk, s->node), from = s->node;

	if (!s->writes && m->file[s->file].copies > 1 && set(m, SET_ONE_COPY) <= 0 &&
	    draw(m, 1000) < 1000 * set(m, SET_SPREAD))
		first++; /* the next copy, even if the own node has one */
	double end = m->now;

	for (int32_t i = 0; i < copies; i++) {
		int32_t server = server_of(m, s->file, chunk, first + i);
		int32_t host = m->s->server[server], to = s->writes ? host : s->node;
		double rate = of_host(m, host, s->writes ? HOST_IN : HOST_OUT);

		from = s->writes ? from : host;
		if (m->server_free[server] > end)
			end = m->server_free[server];
		end += set(m, SET_REQUEST);
		m->server_free[server] = end;
		if (from != to) {
			end += set(m, SET_LATENCY) + (rate > 0 ? s->bytes / rate : 0);
			end += behind_others(m, s->node);
			if (site_of(m, from) != site_of(m, to)) {
				end += set(m, SET_SITE_LATENCY);
				m->crossed += s->bytes;
			}
			m->host[from].out += s->bytes;
			m->host[to].in += s->bytes;
			m->network += s->bytes;
		}
		from = host;
	}
	return end - m->now;
}
