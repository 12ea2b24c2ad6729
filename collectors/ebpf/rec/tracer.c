// SPDX-License-Identifier: Apache-2.0
/* The BPF object: open, configure, load, attach, read, finish. */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "object.h"
#include "rec.h"

/* The object file, embedded by tracehint_bpf.S. */
extern const unsigned char tracehint_bpf_start[], tracehint_bpf_end[];

static struct bpf_object *object;
static struct ring_buffer *rings;
struct maps maps;
static size_t state_size, procs_size, episodes_size;

static void *map_memory(const char *name, size_t *size, size_t value, unsigned int entries)
{
	void *memory;

	*size = value * entries;
	memory = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED,
		      bpf_map__fd(config_map(object, name)), 0);
	return memory == MAP_FAILED ? NULL : memory;
}

/* direct: with the kernel function bpf_rdonly_cast, where the kernel has it. */
static int load(const struct options *options, unsigned long long cookie, bool direct)
{
	LIBBPF_OPTS(bpf_object_open_opts, how);
	int err = 0;

	programs_find();
	direct = direct && !programs_prepare_by_number();
	if (!direct)
		programs_prepare_by_name();
	object = bpf_object__open_mem(tracehint_bpf_start,
				      (size_t)(tracehint_bpf_end - tracehint_bpf_start), &how);
	err = (int)libbpf_get_error(object);
	if (err)
		object = NULL;
	else
		err = config_object(object, options, cookie, direct);
	if (!err)
		err = bpf_object__load(object);
	malloc_trim(0); /* return the memory that libbpf used for loading */
	return err;
}

int tracer_load(const struct options *options, unsigned long long cookie)
{
	int err;

	maps.slots = options->slots;
	err = options->no_direct ? -ENOTSUP : load(options, cookie, true);
	if (err && err != -EPERM) { /* fall back to what always works */
		bpf_object__close(object);
		err = load(options, cookie, false);
	}
	if (err)
		return err;
	maps.state = map_memory(".bss", &state_size, sizeof(*maps.state), 1);
	maps.procs = map_memory("procs", &procs_size, sizeof(*maps.procs), maps.slots);
	maps.episodes = map_memory("direct_episodes", &episodes_size, sizeof(*maps.episodes),
				   maps.slots * TH_DIRECT_FDS);
	maps.hashed_fd = bpf_map__fd(config_map(object, "hashed_episodes"));
	maps.free_fd = bpf_map__fd(config_map(object, "free_slots"));
	rings = ring_buffer__new(bpf_map__fd(config_map(object, "events")), collect_event, NULL,
				 NULL);
	if (!maps.state || !maps.procs || !maps.episodes || collect_init() ||
	    libbpf_get_error(rings))
		return -ENOMEM;
	if (ring_buffer__add(rings, bpf_map__fd(config_map(object, "extents")), collect_extent,
			     NULL))
		return -ENOMEM;
	reserve_entries();
	return 0;
}

int tracer_attach(void)
{
	return programs_attach(object);
}

void tracer_arm(void)
{
	__atomic_store_n(&maps.state->armed, TH_ARMED, __ATOMIC_SEQ_CST);
}

bool tracer_armed(void)
{
	return __atomic_load_n(&maps.state->armed, __ATOMIC_SEQ_CST) == TH_ARMED ||
	       !maps.state->root_epoch;
}

unsigned int tracer_epochs(void)
{
	return __atomic_load_n(&maps.state->epochs, __ATOMIC_SEQ_CST);
}

int tracer_want_pid(unsigned int pid)
{
	unsigned int one = 1;
	int err;

	/* the counter first: while it is 0 the program does not search */
	__atomic_fetch_add(&maps.state->wanted, 1, __ATOMIC_SEQ_CST);
	err = bpf_map_update_elem(bpf_map__fd(config_map(object, "pids_wanted")), &pid, &one,
				  BPF_NOEXIST);
	if (err)
		__atomic_fetch_sub(&maps.state->wanted, 1, __ATOMIC_SEQ_CST);
	return err == -EEXIST ? 0 : err;
}

void tracer_unwant_pid(unsigned int pid)
{
	if (!bpf_map_delete_elem(bpf_map__fd(config_map(object, "pids_wanted")), &pid))
		__atomic_fetch_sub(&maps.state->wanted, 1, __ATOMIC_SEQ_CST);
}

/* The next requested process that is not adopted yet; 0: none. */
unsigned int tracer_next_wanted(unsigned int after)
{
	int fd = bpf_map__fd(config_map(object, "pids_wanted"));
	unsigned int pid;

	return bpf_map_get_next_key(fd, after ? &after : NULL, &pid) ? 0 : pid;
}

int tracer_want_cgroup(int fd)
{
	unsigned int zero = 0;

	return bpf_map_update_elem(bpf_map__fd(config_map(object, "cgroup_wanted")), &zero, &fd,
				   BPF_ANY);
}

unsigned int tracer_live(void)
{
	return __atomic_load_n(&maps.state->live, __ATOMIC_SEQ_CST);
}

int tracer_epoll_fd(void)
{
	return ring_buffer__epoll_fd(rings);
}

int tracer_consume(void)
{
	return ring_buffer__consume(rings);
}

/* Detach, and write out the remaining contents of the rings and maps. */
void tracer_finish(void)
{
	programs_detach();
	ring_buffer__consume(rings);
	collect_finish();
}

unsigned long long tracer_misses(void)
{
	return programs_misses(object);
}

void tracer_free(void)
{
	programs_detach();
	ring_buffer__free(rings);
	if (maps.state)
		munmap(maps.state, state_size);
	if (maps.procs)
		munmap(maps.procs, procs_size);
	if (maps.episodes)
		munmap(maps.episodes, episodes_size);
	collect_free();
	bpf_object__close(object);
}
