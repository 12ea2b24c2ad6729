// SPDX-License-Identifier: Apache-2.0
/* Configuration of the BPF programs before they are loaded, and the sizes of their maps. */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "object.h"
#include "rec.h"

#define TID_BLOCK 32
#define GAP_NS 250000000ULL /* a pause that ends a run of accesses */

static const unsigned int no_data[] = TH_NO_DATA;

struct bpf_map *config_map(struct bpf_object *object, const char *name)
{
	struct bpf_map *map;

	bpf_object__for_each_map(
		map, object) if (!strcmp(bpf_map__name(map), name) ||
				 (name[0] == '.' && strstr(bpf_map__name(map), name))) return map;
	return NULL;
}

#define FIRST_PID_NAMESPACE 0xeffffffcU /* its inode number */

/* Maximum thread number of the initial pid namespace, which that of a nested one does not bound. */
static unsigned int pid_max(void)
{
	unsigned int n = 4194304;
	FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
	struct stat st;

	if (!f)
		return n;
	if (stat("/proc/self/ns/pid", &st) || st.st_ino != FIRST_PID_NAMESPACE) {
		fclose(f);
		return n;
	}
	if (fscanf(f, "%u", &n) != 1 || n < 1024 || n > 4194304)
		n = 4194304;
	fclose(f);
	return n;
}

int config_object(struct bpf_object *object, const struct options *options,
		  unsigned long long cookie, bool direct)
{
	size_t size = 0;
	struct bpf_map *map = config_map(object, ".rodata");
	struct th_config *cfg = map ? (void *)bpf_map__initial_value(map, &size) : NULL;
	struct timespec tick = {};
	unsigned int cpus = (unsigned int)libbpf_num_possible_cpus();

	if (!cfg || size < sizeof(*cfg))
		return -EINVAL;
	cfg->slots = maps.slots;
	cfg->cookie = cookie;
	cfg->follow = options->pid	     ? TH_FOLLOW_PIDS
		      : options->cgroup	     ? TH_FOLLOW_CGROUP
		      : options->listen >= 0 ? TH_FOLLOW_NODE
					     : TH_FOLLOW_COMMAND;
	cfg->only_uid = geteuid() != 0;
	cfg->uid = getuid();
	clock_getres(CLOCK_REALTIME_COARSE, &tick); /* the kernel's tick, unlike _SC_CLK_TCK */
	cfg->gap_ticks = GAP_NS / (tick.tv_nsec ? (unsigned long long)tick.tv_nsec : 4000000);
	cfg->gap_ns = GAP_NS;
	cfg->wake_bytes = options->extents_ring / 4;
	memcpy(cfg->magics, no_data, sizeof(no_data));
	calls_fill(cfg);
	programs_choose(object, cfg, direct);
	if (bpf_map__set_max_entries(config_map(object, "tids"), pid_max() / TID_BLOCK + 1) ||
	    bpf_map__set_max_entries(config_map(object, "procs"), maps.slots) ||
	    bpf_map__set_max_entries(config_map(object, "spans"), maps.slots) ||
	    bpf_map__set_max_entries(config_map(object, "direct_episodes"),
				     maps.slots * TH_DIRECT_FDS) ||
	    bpf_map__set_max_entries(config_map(object, "free_slots"), maps.slots) ||
	    bpf_map__set_max_entries(config_map(object, "exec_scratches"),
				     cfg->follow ? 3 * cpus : cpus) ||
	    bpf_map__set_max_entries(config_map(object, "events"), options->ring) ||
	    bpf_map__set_max_entries(config_map(object, "extents"), options->extents_ring))
		return -EINVAL;
	return 0;
}
