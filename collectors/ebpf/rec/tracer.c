// SPDX-License-Identifier: Apache-2.0
/* The BPF object: open, configure, load, attach, read, finish. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "rec.h"

#define TID_BLOCK 32
#define PAGE 4096UL
#define HASH_TICKS 5

/* The object file, put into this program by tracehint_bpf.S. */
extern const unsigned char tracehint_bpf_start[], tracehint_bpf_end[];

/* File systems whose files hold no data: proc, sysfs, cgroup, cgroup2, debugfs, tracefs ... */
static const unsigned int no_data[] = {
	0x9fa0,	    0x62656572, 0x27e0eb,   0x63677270, 0x64626720, 0x74726163,
	0x73636673, 0xcafe4a11, 0x62656570, 0x1cd1,	0x6165676c, 0x19800202,
	0x42494e4d, 0xde5e81e4, 0xf97cff8c, 0x6e736673,
};

/* The last ones only where the kernel has their tracepoints. */
static const struct {
	const char *name;
	const char *needs;
} programs[] = {
	{"th_sys_exit", NULL},
	{"th_newtask", NULL},
	{"th_exec", NULL},
	{"th_exit", NULL},
	{"th_uring", "btf_trace_io_uring_complete"},
	{"th_fault", "btf_trace_mm_filemap_fault"},
	{"th_map_pages", "btf_trace_mm_filemap_map_pages"},
};
#define PROGRAMS (sizeof(programs) / sizeof(*programs))

static struct bpf_object *object;
static struct bpf_link *links[PROGRAMS];
static bool wanted[PROGRAMS];
static struct ring_buffer *rings;
static struct th_state *state;
static struct th_process *procs;
static struct th_episode *episodes;
static size_t state_size, procs_size, episodes_size;
static unsigned int slots;
static int hashed_fd = -1, free_fd = -1;
static bool sweep_wanted;
static unsigned int ticks;
/* what the last snapshot of each open episode saw */
static unsigned long long *seen_ops;

static struct bpf_map *map_named(const char *name)
{
	struct bpf_map *map;

	bpf_object__for_each_map(
		map, object) if (!strcmp(bpf_map__name(map), name) ||
				 (name[0] == '.' && strstr(bpf_map__name(map), name))) return map;
	return NULL;
}

static void *map_memory(const char *name, size_t *size, size_t value, unsigned int entries)
{
	void *memory;

	*size = (value * entries + PAGE - 1) & ~(PAGE - 1);
	memory = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map_named(name)),
		      0);
	return memory == MAP_FAILED ? NULL : memory;
}

static unsigned int pid_max(void)
{
	unsigned int n = 4194304;
	FILE *f = fopen("/proc/sys/kernel/pid_max", "re");

	if (!f)
		return n;
	if (fscanf(f, "%u", &n) != 1 || n < 1024 || n > 4194304)
		n = 4194304;
	fclose(f);
	return n;
}

static struct bpf_program *program_of(size_t i)
{
	return bpf_object__find_program_by_name(object, programs[i].name);
}

/* The strings of the kernel's type information; parsing all of it would take 10 ms. */
static char *kernel_names(size_t *size)
{
	FILE *f = fopen("/sys/kernel/btf/vmlinux", "re");
	struct stat st;
	char *text = NULL;

	if (!f)
		return NULL;
	if (!fstat(fileno(f), &st) && st.st_size > 0 && (text = malloc((size_t)st.st_size)))
		*size = fread(text, 1, (size_t)st.st_size, f);
	fclose(f);
	return text;
}

/* Ask the kernel which tracepoints it has, in its own type information. */
static void choose_programs(struct th_config *cfg)
{
	size_t size = 0;
	char *names = kernel_names(&size);

	for (size_t i = 0; i < PROGRAMS; i++) {
		if (!programs[i].needs)
			continue;
		wanted[i] = names &&
			    memmem(names, size, programs[i].needs, strlen(programs[i].needs) + 1);
		bpf_program__set_autoload(program_of(i), wanted[i]);
	}
	cfg->faults = wanted[PROGRAMS - 1] && wanted[PROGRAMS - 2];
	free(names);
}

static int configure(const struct options *options, unsigned long long cookie, bool direct)
{
	size_t size = 0;
	struct bpf_map *map = map_named(".rodata");
	struct th_config *cfg = map ? (void *)bpf_map__initial_value(map, &size) : NULL;
	unsigned int cpus = (unsigned int)libbpf_num_possible_cpus();

	if (!cfg || size < sizeof(*cfg))
		return -EINVAL;
	cfg->direct = direct;
	cfg->slots = slots;
	cfg->cookie = cookie;
	cfg->only_uid = geteuid() != 0;
	cfg->uid = getuid();
	cfg->gap_ticks = (unsigned long long)(250 * sysconf(_SC_CLK_TCK) / 1000);
	cfg->wake_bytes = options->extents_ring / 4;
	memcpy(cfg->magics, no_data, sizeof(no_data));
	calls_fill(cfg);
	choose_programs(cfg);
	if (bpf_map__set_max_entries(map_named("tids"), pid_max() / TID_BLOCK + 1) ||
	    bpf_map__set_max_entries(map_named("procs"), slots) ||
	    bpf_map__set_max_entries(map_named("direct_episodes"), slots * TH_DIRECT_FDS) ||
	    bpf_map__set_max_entries(map_named("free_slots"), slots) ||
	    bpf_map__set_max_entries(map_named("exec_scratches"), cpus) ||
	    bpf_map__set_max_entries(map_named("events"), options->ring) ||
	    bpf_map__set_max_entries(map_named("extents"), options->extents_ring))
		return -EINVAL;
	return 0;
}

static unsigned int slots_used(void)
{
	unsigned int used = __atomic_load_n(&state->slots_used, __ATOMIC_SEQ_CST) + 1;

	return used < slots ? used : slots;
}

static void episode_out(struct th_episode *ep)
{
	spool_put(SPOOL_EPISODES, ep, sizeof(*ep));
}

/*
 * The hash table: descriptors 16 and above, threads, io_uring, mappings. Episodes
 * of finished epochs are written out and removed; with `snapshots`, the others
 * are written as they are.
 */
static void sweep(bool snapshots)
{
	struct fd_key {
		unsigned int epoch, fd, tid;
	} key, next, *old = NULL;
	struct fd_key *gone = NULL;
	size_t n = 0, room = 0;
	unsigned int *live = calloc(slots, sizeof(*live));
	size_t alive = 0;
	struct th_episode ep;

	if (!live)
		return;
	for (unsigned int i = 1; i < slots_used(); i++)
		if (procs[i].state == TH_LIVE)
			live[alive++] = procs[i].epoch;
	while (!bpf_map_get_next_key(hashed_fd, old, &next)) {
		bool found = false;

		for (size_t i = 0; i < alive && !found; i++)
			found = live[i] == next.epoch;
		if (!found) {
			if (n == room) {
				struct fd_key *more =
					realloc(gone, (room = room * 2 + 256) * sizeof(*gone));

				if (!more)
					break;
				gone = more;
			}
			gone[n++] = next;
		}
		if (found && snapshots && !bpf_map_lookup_elem(hashed_fd, &next, &ep) &&
		    (ep.state & TH_EP_LIVE) && !(ep.state & TH_EP_IGNORED)) {
			ep.kind = TH_SNAPSHOT;
			episode_out(&ep);
		}
		key = next;
		old = &key;
	}
	for (size_t i = 0; i < n; i++) {
		if (bpf_map_lookup_elem(hashed_fd, &gone[i], &ep))
			continue;
		ep.kind = TH_EPISODE;
		/* not measured at exit: at least what was there or written */
		ep.nlink = 1;
		ep.size_close = ep.size_open;
		if (ep.write_ops && ep.next != ~0ULL && ep.next > ep.size_close)
			ep.size_close = ep.next;
		if ((ep.state & TH_EP_LIVE) && !(ep.state & TH_EP_IGNORED))
			episode_out(&ep);
		bpf_map_delete_elem(hashed_fd, &gone[i]);
	}
	free(gone);
	free(live);
}

/* The process has ended: write out what its slot still holds and give it back. */
static void slot_finish(unsigned int slot)
{
	struct th_process *proc = &procs[slot];

	for (unsigned int fd = 0; fd < TH_DIRECT_FDS; fd++) {
		struct th_episode *ep = &episodes[slot * TH_DIRECT_FDS + fd];

		if (!(ep->state & TH_EP_LIVE))
			continue;
		ep->kind = TH_EPISODE;
		if (!(ep->state & TH_EP_IGNORED) && ep->epoch == proc->epoch)
			episode_out(ep);
		ep->state = 0;
	}
	if (proc->hashed)
		sweep_wanted = true;
	spool_put(SPOOL_PROCESSES, proc, sizeof(*proc));
	proc->state = TH_FREE;
	bpf_map_update_elem(free_fd, NULL, &slot, BPF_ANY);
}

static bool marker(const char *text, size_t len)
{
	static const char *const names[] = {
		"TRACEHINT_TASK=",
		"SLURM_JOB_ID=",
		"SLURM_ARRAY_JOB_ID=",
		"SLURM_ARRAY_TASK_ID=",
		"SLURM_STEP_ID=",
		"SLURM_PROCID=",
		"PBS_JOBID=",
		"PBS_ARRAY_INDEX=",
		"LSB_JOBID=",
		"LSB_JOBINDEX=",
		"OMPI_COMM_WORLD_RANK=",
		"PMI_RANK=",
		"PARALLEL_SEQ=",
		"MAKELEVEL=",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (len > strlen(names[i]) && !memcmp(text, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Only the variables that name a task leave this process' memory. */
static void exec_out(const struct th_exec *rec, size_t size)
{
	const char *argv = (const char *)(rec + 1), *env = argv + rec->argv_len;
	struct th_spool_exec out = {.epoch = rec->epoch, .argv_len = rec->argv_len};
	char chosen[4096];
	size_t used = 0;

	if (size < sizeof(*rec) + rec->argv_len + rec->env_len)
		return;
	for (size_t at = 0; at < rec->env_len;) {
		size_t len = strnlen(env + at, rec->env_len - at) + 1;

		if (marker(env + at, len - 1) && at + len <= rec->env_len &&
		    used + len <= sizeof(chosen)) {
			memcpy(chosen + used, env + at, len);
			used += len;
		}
		at += len;
	}
	out.argv_off = spool_text(argv, rec->argv_len);
	out.env_len = (unsigned int)used;
	out.env_off = spool_text(chosen, used);
	spool_put(SPOOL_EXECS, &out, sizeof(out));
	spool_put(SPOOL_PROCESSES, &rec->old, sizeof(rec->old));
	if (rec->old.hashed)
		sweep_wanted = true;
}

static int on_event(void *ctx, void *data, size_t size)
{
	(void)ctx;
	switch (*(unsigned int *)data) {
	case TH_EPISODE:
		episode_out(data);
		break;
	case TH_EXEC:
		exec_out(data, size);
		break;
	case TH_EXIT: {
		const struct th_process *proc = data;

		if (proc->slot < slots && procs[proc->slot].state == TH_ENDED &&
		    procs[proc->slot].epoch == proc->epoch)
			slot_finish(proc->slot);
		break;
	}
	case TH_PATH:
		resolve_path_added(data);
		break;
	case TH_NAME:
		resolve_name(data);
		break;
	}
	return 0;
}

static int on_extent(void *ctx, void *data, size_t size)
{
	(void)ctx;
	spool_put(SPOOL_EXTENTS, data, size);
	return 0;
}

static int load(const struct options *options, unsigned long long cookie, bool direct)
{
	int err;

	object = bpf_object__open_mem(tracehint_bpf_start,
				      (size_t)(tracehint_bpf_end - tracehint_bpf_start), NULL);
	err = (int)libbpf_get_error(object);
	if (err) {
		object = NULL;
		return err;
	}
	err = configure(options, cookie, direct);
	return err ? err : bpf_object__load(object);
}

/* First with bpf_rdonly_cast; kernels before 6.2 refuse that and get probe reads. */
int tracer_load(const struct options *options, unsigned long long cookie)
{
	int err;

	slots = options->slots;
	err = options->no_direct ? -ENOTSUP : load(options, cookie, true);
	if (err) {
		bpf_object__close(object);
		err = load(options, cookie, false);
	}
	if (err)
		return err;
	state = map_memory(".bss", &state_size, sizeof(*state), 1);
	procs = map_memory("procs", &procs_size, sizeof(*procs), slots);
	episodes = map_memory("direct_episodes", &episodes_size, sizeof(*episodes),
			      slots * TH_DIRECT_FDS);
	seen_ops = calloc((size_t)slots * TH_DIRECT_FDS, sizeof(*seen_ops));
	hashed_fd = bpf_map__fd(map_named("hashed_episodes"));
	free_fd = bpf_map__fd(map_named("free_slots"));
	rings = ring_buffer__new(bpf_map__fd(map_named("events")), on_event, NULL, NULL);
	if (!state || !procs || !episodes || !seen_ops || libbpf_get_error(rings))
		return -ENOMEM;
	if (ring_buffer__add(rings, bpf_map__fd(map_named("extents")), on_extent, NULL))
		return -ENOMEM;
	return 0;
}

int tracer_attach(void)
{
	for (size_t i = 0; i < PROGRAMS; i++) {
		struct bpf_program *program = program_of(i);

		if (programs[i].needs && !wanted[i])
			continue;
		links[i] = program ? bpf_program__attach(program) : NULL;
		if (!links[i] || libbpf_get_error(links[i])) {
			int err = links[i] ? (int)libbpf_get_error(links[i]) : -errno;

			links[i] = NULL;
			return err ? err : -ENOENT;
		}
	}
	return 0;
}

void tracer_arm(void)
{
	__atomic_store_n(&state->armed, 1, __ATOMIC_SEQ_CST);
}

bool tracer_armed(void)
{
	return __atomic_load_n(&state->armed, __ATOMIC_SEQ_CST) || !state->root_epoch;
}

unsigned int tracer_live(void)
{
	return __atomic_load_n(&state->live, __ATOMIC_SEQ_CST);
}

int tracer_epoll_fd(void)
{
	return ring_buffer__epoll_fd(rings);
}

int tracer_consume(void)
{
	return ring_buffer__consume(rings);
}

/* Open episodes and processes as they are now, for a recorder that gets killed. */
static void snapshot(void)
{
	for (unsigned int slot = 1; slot < slots_used(); slot++) {
		if (procs[slot].state != TH_LIVE)
			continue;
		struct th_process proc = procs[slot];

		proc.kind = TH_ALIVE;
		spool_put(SPOOL_PROCESSES, &proc, sizeof(proc));
		for (unsigned int fd = 0; fd < TH_DIRECT_FDS; fd++) {
			unsigned int i = slot * TH_DIRECT_FDS + fd;
			struct th_episode ep = episodes[i];
			unsigned long long ops = ep.open_id + ep.read_ops + ep.write_ops;

			if (!(ep.state & TH_EP_LIVE) || (ep.state & TH_EP_IGNORED) ||
			    ep.epoch != proc.epoch || seen_ops[i] == ops)
				continue;
			seen_ops[i] = ops;
			ep.kind = TH_SNAPSHOT;
			episode_out(&ep);
		}
	}
}

/* About once a second: ends that the ring had no room for, old episodes, snapshots. */
void tracer_tick(void)
{
	for (unsigned int slot = 1; slot < slots_used(); slot++)
		if (procs[slot].state == TH_ENDED)
			slot_finish(slot);
	/* walking the whole table takes up to 50 ms: not each second */
	if (sweep_wanted || ticks++ % HASH_TICKS == 1) {
		sweep(ticks % HASH_TICKS == 2);
		sweep_wanted = false;
	}
	snapshot();
	spool_flush();
}

static void detach(void)
{
	for (size_t i = 0; i < PROGRAMS; i++) {
		bpf_link__destroy(links[i]);
		links[i] = NULL;
	}
}

static void losses_out(void)
{
	for (unsigned int kind = 0; kind < TH_LOST_KINDS; kind++) {
		struct th_spool_loss loss = {.kind = kind, .count = state->lost[kind]};

		if (loss.count)
			spool_put(SPOOL_LOSSES, &loss, sizeof(loss));
	}
	struct th_spool_loss misses = {.kind = TH_LOSS_RECURSION, .count = tracer_misses()};
	struct th_spool_loss unwritten = {.kind = TH_LOSS_SPOOL_WRITE, .count = spool_lost()};

	if (misses.count)
		spool_put(SPOOL_LOSSES, &misses, sizeof(misses));
	if (unwritten.count)
		spool_put(SPOOL_LOSSES, &unwritten, sizeof(unwritten));
}

/* Stop, and write out what is still in the rings and maps. */
void tracer_finish(void)
{
	detach();
	ring_buffer__consume(rings);
	for (unsigned int slot = 1; slot < slots_used(); slot++)
		if (procs[slot].state == TH_ENDED)
			slot_finish(slot);
	memset(seen_ops, 0, (size_t)slots * TH_DIRECT_FDS * sizeof(*seen_ops));
	snapshot(); /* processes that outlive the recording */
	for (unsigned int slot = 1; slot < slots_used(); slot++)
		procs[slot].state = TH_FREE;
	sweep(false);
	losses_out();
}

/* Times that a program was skipped because it was running already on that processor. */
unsigned long long tracer_misses(void)
{
	unsigned long long sum = 0;

	for (size_t i = 0; i < PROGRAMS; i++) {
		struct bpf_program *program = program_of(i);
		struct bpf_prog_info info = {};
		unsigned int size = sizeof(info);

		if (program && bpf_program__fd(program) >= 0 &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
			sum += info.recursion_misses;
	}
	return sum;
}

void tracer_free(void)
{
	detach();
	ring_buffer__free(rings);
	if (state)
		munmap(state, state_size);
	if (procs)
		munmap(procs, procs_size);
	if (episodes)
		munmap(episodes, episodes_size);
	free(seen_ops);
	bpf_object__close(object);
}
