// SPDX-License-Identifier: Apache-2.0
/*
 * Kernel features that the programs need. They are probed, and only if the programs do not load:
 * the version is not enough, as distributions backport parts of BPF to older kernels.
 */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include "rec.h"

enum kind { HELPER, MAP };

/* Newest first; the version is the first mainline kernel with the feature. */
static const struct need {
	enum kind kind;
	int number;
	const char *name;
} needs[] = {
	{HELPER, BPF_FUNC_loop, "bpf_loop (Linux 5.17)"},
	{HELPER, BPF_FUNC_find_vma, "bpf_find_vma (5.17)"},
	{HELPER, BPF_FUNC_get_current_task_btf, "bpf_get_current_task_btf (5.11)"},
	{MAP, BPF_MAP_TYPE_RINGBUF, "ring buffers (5.8)"},
	{HELPER, BPF_FUNC_ktime_get_boot_ns, "bpf_ktime_get_boot_ns (5.8)"},
	{HELPER, BPF_FUNC_jiffies64, "bpf_jiffies64 (5.6)"},
	{HELPER, BPF_FUNC_probe_read_kernel, "bpf_probe_read_kernel (5.5, without lockdown)"},
	{MAP, BPF_MAP_TYPE_QUEUE, "queue maps (4.20)"},
	{MAP, BPF_MAP_TYPE_CGROUP_ARRAY, "cgroup maps (4.8)"},
};

/* Print the features that this kernel lacks; nothing if it has all or does not allow the probe. */
void features_print_missing(FILE *out)
{
	const char *separator = "tracehint-rec: the kernel lacks ";
	size_t i;

	for (i = 0; i < sizeof(needs) / sizeof(*needs); i++) {
		const struct need *need = &needs[i];
		int has = need->kind == MAP ? libbpf_probe_bpf_map_type(need->number, NULL)
					    : libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE,
								      need->number, NULL);

		if (has)
			continue; /* present, or an error: unknown */
		fprintf(out, "%s%s", separator, need->name);
		separator = ", ";
	}
	if (*separator == ',')
		fputc('\n', out);
}
