/*
 * Mapped files: records the mapped range, an upper bound of the accessed bytes. Some mappings are
 * remembered, because they may grow (mremap) or become writable later (mprotect).
 */
#include <linux/mman.h>
#include "record.h"

/* Return `len` limited to the bytes of the file after `start`; 0: none. */
static unsigned long long limit_to_file(unsigned long long start, unsigned long long len,
					unsigned long long size)
{
	if (start >= size)
		return 0;
	return len < size - start ? len : size - start;
}

static void forget(struct rec *rec, unsigned long at, unsigned long len)
{
	for (unsigned int i = 0; i < TH_MAPS; i++) {
		struct mapping *m = &rec->maps[i];

		if (m->len && m->at < at + len && at < m->at + m->len)
			m->len = 0;
	}
}

static void map_remember(struct rec *rec, const struct mapping *new)
{
	for (unsigned int i = 0; i < TH_MAPS; i++)
		if (!rec->maps[i].len) {
			rec->maps[i] = *new;
			return;
		}
	rec->maps_lost = 1;
}

static void map_used(struct rec *rec, const struct mapping *m, unsigned long long start,
		     unsigned long long len, bool read, bool written)
{
	len = limit_to_file(start, len, m->size);
	if (!len)
		return;
	if (read)
		run_add(rec, m->ep, TH_OP(TH_READ, TH_HOW_MMAP, 1), start, len);
	if (written)
		run_add(rec, m->ep, TH_OP(TH_WRITE, TH_HOW_MMAP, 1), start, len);
}

void map_mmap(struct rec *rec, const struct th_call *c)
{
	bool written = (c->arg[3] & MAP_TYPE) != MAP_PRIVATE && (c->arg[2] & PROT_WRITE);
	struct slot *slot;
	unsigned long long size;

	if (th_failed(c->ret))
		return;
	if ((c->arg[3] & MAP_FIXED) || rec->maps_lost)
		forget(rec, (unsigned long)c->ret, (unsigned long)c->arg[1]);
	if ((c->arg[3] & MAP_ANONYMOUS) || (int)c->arg[4] < 0)
		return;
	slot = slot_use(rec, (int)c->arg[4]);
	if (!slot || slot->kind != SLOT_FILE || !size_of((int)c->arg[4], &size))
		return;
	struct mapping m = {
		.at = (unsigned long)c->ret,
		.len = (unsigned long)c->arg[1],
		.start = (unsigned long)c->arg[5],
		.size = size,
		.shared = (c->arg[3] & MAP_TYPE) != MAP_PRIVATE,
		.written = written,
	};

	slot->writes |= written;
	slot->held |= HELD_MAPPING;
	m.ep = episode_of(rec, slot, (int)c->arg[4]);
	if (!m.ep)
		return;
	map_used(rec, &m, m.start, m.len, true, written);
	map_remember(rec, &m);
}

void map_munmap(struct rec *rec, const struct th_call *c)
{
	if (!c->ret)
		forget(rec, (unsigned long)c->arg[0], (unsigned long)c->arg[1]);
}

static struct mapping *find(struct rec *rec, unsigned long at)
{
	for (unsigned int i = 0; i < TH_MAPS; i++)
		if (rec->maps[i].len && at >= rec->maps[i].at &&
		    at < rec->maps[i].at + rec->maps[i].len)
			return &rec->maps[i];
	return NULL;
}

/* Record the added range. */
void map_mremap(struct rec *rec, const struct th_call *c)
{
	unsigned long before = (unsigned long)c->arg[1], after = (unsigned long)c->arg[2];

	struct mapping *m = th_failed(c->ret) ? NULL : find(rec, (unsigned long)c->arg[0]);

	if (!m)
		return;
	struct mapping moved = *m;
	unsigned long long start = m->start + ((unsigned long)c->arg[0] - m->at);

	m->len = 0;
	moved.at = (unsigned long)c->ret;
	moved.start = start;
	moved.len = after;
	map_remember(rec, &moved);
	if (after > before)
		map_used(rec, &moved, start + before, after - before, true, moved.written);
}

void map_mprotect(struct rec *rec, const struct th_call *c)
{
	struct mapping *m =
		c->ret || !(c->arg[2] & PROT_WRITE) ? NULL : find(rec, (unsigned long)c->arg[0]);

	if (!m || !m->shared || m->written)
		return;
	unsigned long long from = (unsigned long)c->arg[0] - m->at;

	map_used(rec, m, m->start + from, (unsigned long)c->arg[1], false, true);
}
