// SPDX-License-Identifier: Apache-2.0
/* Writing the journal: see tag/journal.h. */
#include "../trusted.h"
#include "journal.h"

#define O_RDWR 2
#define O_CREAT 0100
#define O_NOFOLLOW 0400000
#define O_CLOEXEC 02000000
#define F_DUPFD_CLOEXEC 1030
#define PROT_READ_WRITE 3
#define MAP_SHARED 1
#define EOPNOTSUPP 95
#define CLOCK_REALTIME 0
#define RETRIES 4 /* chunks that other threads may fill meanwhile */

struct uts {
	char sysname[65], nodename[65], rest[4 * 65];
};

struct timespec64 {
	int64_t seconds, nanoseconds;
};

/* Set the path TABLE.journal.HOST; a slash in HOST is replaced. */
static bool name_journal(struct tag_journal *j, const char *table)
{
	static const char mark[] = ".journal.";
	struct uts u;
	size_t n = th_len(table);

	if (n + sizeof(mark) + sizeof(u.nodename) > sizeof(j->path) || table[0] != '/' ||
	    th_failed(th_sys(__NR_uname, &u)))
		return false;
	th_copy(j->path, table, n);
	th_copy(j->path + n, mark, sizeof(mark) - 1);
	n += sizeof(mark) - 1;
	for (size_t i = 0; i < sizeof(u.nodename) && u.nodename[i]; i++)
		j->path[n++] = u.nodename[i] == '/' ? '_' : u.nodename[i];
	j->path[n] = 0;
	return true;
}

static void *map_part(long fd, uint64_t at, size_t size)
{
	long failed = th_sys(__NR_fallocate, fd, 0, at, size);
	long where = th_failed(failed) && failed != -EOPNOTSUPP
			     ? failed
			     : th_sys(__NR_mmap, 0, size, PROT_READ_WRITE, MAP_SHARED, fd, at);

	return th_failed(where) ? NULL : (void *)where;
}

static long open_journal(const struct tag_journal *j)
{
	/* O_NOFOLLOW is not needed: in tracehint's own directory links are made by `run` */
	return th_open_own(j->path, O_RDWR | O_CLOEXEC);
}

/* Make the file with its full size (sparse), so that no later write makes it longer. */
static void make_journal(const struct tag_journal *j)
{
	static const char magic[] = TAG_JOURNAL_MAGIC;
	struct {
		uint64_t soft, hard;
	} limit = {0, 0};

	/* beyond the limit the program would get a signal */
	th_sys(__NR_prlimit64, 0, 1 /* RLIMIT_FSIZE */, 0, &limit);
	if (limit.soft < TAG_JOURNAL_SIZE)
		return;
	long fd = th_sys(__NR_openat, TH_AT_FDCWD, j->path,
			 O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (th_failed(fd))
		return;
	/* another process may do the same at the same time */
	if (!th_failed(th_sys(__NR_ftruncate, fd, TAG_JOURNAL_SIZE)))
		th_sys(__NR_pwrite64, fd, magic, 8, 0);
	th_sys(__NR_close, fd);
}

/* Whether another process has created the file, but not written its magic yet. */
static bool is_half_made(long fd)
{
	char magic[8] = {0};
	long n = th_sys(__NR_pread64, fd, magic, sizeof(magic), 0);

	return !th_failed(n) && !magic[0];
}

void tag_journal_open(struct tag_journal *j, const char *table)
{
	j->header = NULL;
	j->chunk = NULL;
	if (!name_journal(j, table))
		return;
	long fd = open_journal(j);
	bool half = !th_failed(fd) && is_half_made(fd);

	if (half)
		th_sys(__NR_close, fd);
	if (half || fd == -2 /* ENOENT */) {
		make_journal(j);
		fd = open_journal(j);
	}
	if (th_failed(fd))
		return;
	struct tag_journal_header *header = map_part(fd, 0, TAG_CHUNK);

	th_sys(__NR_close, fd);
	if (!header)
		return;
	if (!th_same(header->magic, TAG_JOURNAL_MAGIC, 8)) {
		th_sys(__NR_munmap, header, TAG_CHUNK);
		return;
	}
	j->header = header;
}

void tag_count(struct tag_journal *j, enum tag_count which)
{
	if (j->header)
		__atomic_fetch_add(&j->header->counts[which], 1, __ATOMIC_RELAXED);
}

uint64_t tag_counted(const struct tag_journal *j, enum tag_count which)
{
	return j->header ? __atomic_load_n(&j->header->counts[which], __ATOMIC_RELAXED) : 0;
}

/* Allocate and map adjacent chunks; NULL: not possible. */
static struct tag_chunk *map_chunks(struct tag_journal *j, uint32_t count)
{
	uint64_t size = (uint64_t)count * TAG_CHUNK;
	uint64_t last = __atomic_fetch_add(&j->header->next, size, __ATOMIC_RELAXED);
	long fd;

	if (last > TAG_JOURNAL_SIZE - TAG_CHUNK - size)
		return NULL;
	fd = open_journal(j);
	if (th_failed(fd))
		return NULL;
	struct tag_chunk *chunks = map_part(fd, last + TAG_CHUNK, size);

	th_sys(__NR_close, fd);
	if (chunks)
		__atomic_store_n(&chunks->more, count - 1, __ATOMIC_RELAXED);
	return chunks;
}

/*
 * Replace `old` by a new chunk; false: not possible. Most processes create few files; allocating
 * disk space takes longer than all other steps for a file.
 */
static bool take_chunk(struct tag_journal *j, struct tag_chunk *old)
{
	uint32_t more = old ? __atomic_load_n(&old->more, __ATOMIC_RELAXED) : 0;
	uint32_t count = old ? TAG_RUN : 1;
	struct tag_chunk *chunk = more ? old + 1 : map_chunks(j, count);

	if (!chunk)
		return false;
	if (more)
		__atomic_store_n(&chunk->more, more - 1, __ATOMIC_RELAXED);
	if (!__atomic_compare_exchange_n(&j->chunk, &old, chunk, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE) &&
	    !more)
		th_sys(__NR_munmap, chunk, (size_t)count * TAG_CHUNK); /* another was faster */
	return true;
}

static uint64_t now(void)
{
	struct timespec64 t = {0, 0};

	th_sys(__NR_clock_gettime, CLOCK_REALTIME, &t);
	return (uint64_t)t.seconds * 1000000000u + (uint64_t)t.nanoseconds;
}

void tag_note(struct tag_journal *j, struct tag_record record, const char *path)
{
	uint32_t size = (sizeof(record) + record.path_size + 7) & ~7u;

	if (!j->header)
		return;
	record.t_ns = now();
	for (int i = 0; i < RETRIES && size <= sizeof(j->chunk->records); i++) {
		struct tag_chunk *chunk = __atomic_load_n(&j->chunk, __ATOMIC_ACQUIRE);
		uint32_t at = sizeof(chunk->records);

		if (chunk)
			at = __atomic_fetch_add(&chunk->used, size, __ATOMIC_RELAXED);
		if (at <= sizeof(chunk->records) - size) {
			struct tag_record *to = (void *)(chunk->records + at);

			th_copy((char *)to + sizeof(record), path, record.path_size);
			record.size = 0;
			th_copy(to, &record, sizeof(record));
			__atomic_store_n(&to->size, size, __ATOMIC_RELEASE);
			return;
		}
		if (!take_chunk(j, chunk))
			break;
	}
	tag_count(j, TAG_C_DROPPED);
}
