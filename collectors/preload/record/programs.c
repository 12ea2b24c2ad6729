/*
 * Programs that were executed before in this recording. To read a program's headers takes some 20
 * system calls, and its path from the kernel (/proc/self/exe) costs as much as ten; both are done
 * once. A program is identified by the executed name and the current file; names that are relative
 * or valid in one process only are not remembered.
 */
#include <linux/stat.h>
#include "process.h"

#define TRIES 8
#define MIX 0x9e3779b97f4a7c15ULL

static unsigned long long mix(unsigned long long hash, unsigned long long with)
{
	hash = (hash ^ with) * MIX;
	return hash ^ hash >> 32;
}

static unsigned long long mix_file(unsigned long long hash, const struct statx *facts)
{
	hash = mix(hash, facts->stx_ino);
	hash = mix(hash, (unsigned long long)facts->stx_dev_major << 32 | facts->stx_dev_minor);
	return mix(hash, facts->stx_mnt_id);
}

unsigned long long th_program_key(const char *path)
{
	const unsigned int mask = STATX_BASIC_STATS | STATX_MNT_ID;
	unsigned long long hash = MIX;
	struct statx facts;

	if (!arena || *path != '/' || path_is_own(path) ||
	    th_failed(th_sys(__NR_statx, TH_AT_FDCWD, path, 0, mask, &facts)))
		return 0;
	for (const char *c = path; *c; c++)
		hash = mix(hash, (unsigned char)*c);
	hash = mix_file(hash, &facts);
	hash = mix(hash, facts.stx_size);
	hash = mix(hash, (unsigned long long)facts.stx_ctime.tv_sec);
	hash = mix(hash, facts.stx_ctime.tv_nsec);
	/* inside a chroot the same name is another file */
	if (th_failed(th_sys(__NR_statx, TH_AT_FDCWD, "/", 0, mask, &facts)))
		return 0;
	return mix_file(hash, &facts) | 1;
}

/* Return the entry of a key, or a free one for it; NULL: no space. */
static struct th_program_known *place_of(unsigned long long key)
{
	for (unsigned int i = 0; i < TRIES; i++) {
		struct th_program_known *at = &arena->programs[((key >> 1) + i) % TH_PROGRAMS];
		unsigned long long file = __atomic_load_n(&at->file, __ATOMIC_ACQUIRE);

		if (file == key || !file)
			return at;
	}
	return NULL;
}

enum th_class th_program_class(unsigned long long key)
{
	const struct th_program_known *at = place_of(key);
	unsigned int class =
		at && at->file == key ? __atomic_load_n(&at->class, __ATOMIC_RELAXED) : 0;

	return class && class <= TH_CLASSES ? (enum th_class)(class - 1) : TH_CLASSES;
}

void th_program_is(unsigned long long key, enum th_class class)
{
	struct th_program_known *at = place_of(key);
	unsigned long long none = 0;

	if (at &&
	    (at->file == key || __atomic_compare_exchange_n(&at->file, &none, key, false,
							    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)))
		__atomic_store_n(&at->class, class + 1, __ATOMIC_RELAXED);
}

/* Return the path that was passed to exec. */
static const char *find_executed_path(const struct th_program *program)
{
	char *const *end = program->envp;

	while (*end)
		end++;
	for (const unsigned long *v = (const unsigned long *)(end + 1); v[0]; v += 2)
		if (v[0] == 31 /* AT_EXECFN */)
			return (const char *)v[1];
	return NULL;
}

/* Return the path of the program that begins. `text`: buffer of TH_PATH_ROOM bytes. */
unsigned int program_name(struct rec *rec, const struct th_program *program, char *text)
{
	const char *path = find_executed_path(program);
	unsigned long long key = path ? th_program_key(path) : 0;
	struct th_program_known *known = key ? place_of(key) : NULL;

	/* scripts have no entry: /proc/self/exe is the path of their interpreter */
	if (known && known->file != key)
		known = NULL;
	unsigned int exe = known ? __atomic_load_n(&known->exe, __ATOMIC_ACQUIRE) : 0;

	if (exe)
		return exe;
	long n = th_sys(__NR_readlink, "/proc/self/exe", text, TH_PATH_ROOM);

	exe = n > 0 ? text_put(rec, rec->root, text, (unsigned int)n) : 0;
	if (known)
		__atomic_store_n(&known->exe, exe, __ATOMIC_RELEASE);
	return exe;
}

/* Store a mount table, which many processes share, as if it were a program. */
unsigned int shared_text(struct rec *rec, const char *text, unsigned int len)
{
	unsigned long long key = mix(MIX, len);

	for (unsigned int i = 0; i < len; i++)
		key = mix(key, (unsigned char)text[i]);
	th_program_is(key |= 1, TH_CLASS_DYNAMIC);
	struct th_program_known *at = place_of(key);
	bool known = at && at->file == key;
	unsigned int id = known ? __atomic_load_n(&at->exe, __ATOMIC_ACQUIRE) : 0;

	if (id)
		return id;
	id = text_put(rec, 0, text, len);
	if (known)
		__atomic_store_n(&at->exe, id, __ATOMIC_RELEASE);
	return id;
}
