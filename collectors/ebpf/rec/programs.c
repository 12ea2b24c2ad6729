// SPDX-License-Identifier: Apache-2.0
/*
 * The programs: finding the kernel's tracepoints for them, loading and attaching them. The kernel
 * function bpf_rdonly_cast is called by its number, so that older kernels without it load the same
 * object.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include "object.h"
#include "rec.h"

/* The programs for page faults are used only if the kernel has all four tracepoints. */
static const struct {
	const char *name;
	bool optional;
} programs[] = {
	{"th_sys_exit", false}, {"th_newtask", false},	 {"th_exec", false},
	{"th_exit", false},	{"th_uring", true},	 {"th_fault", true},
	{"th_map_pages", true}, {"th_user_fault", true}, {"th_kernel_fault", true},
};
#define FAULTS 5 /* the first of four */
#define PROGRAMS (sizeof(programs) / sizeof(*programs))
#define CAST PROGRAMS

/* Attach points in the order of the programs, then the kernel function. */
static struct {
	const char *name;
	unsigned int kind, id; /* id 0: not in this kernel */
} wanted[PROGRAMS + 1] = {
	{.name = "btf_trace_sys_exit", .kind = BTF_KIND_TYPEDEF},
	{.name = "btf_trace_task_newtask", .kind = BTF_KIND_TYPEDEF},
	{.name = "btf_trace_sched_process_exec", .kind = BTF_KIND_TYPEDEF},
	{.name = "btf_trace_sched_process_exit", .kind = BTF_KIND_TYPEDEF},
	{.name = "btf_trace_io_uring_complete", .kind = BTF_KIND_TYPEDEF},
	{.name = "btf_trace_mm_filemap_fault", .kind = BTF_KIND_TYPEDEF},
	{.name = "btf_trace_mm_filemap_map_pages", .kind = BTF_KIND_TYPEDEF},
	{.name = "btf_trace_page_fault_user", .kind = BTF_KIND_TYPEDEF},
	{.name = "btf_trace_page_fault_kernel", .kind = BTF_KIND_TYPEDEF},
	[CAST] = {.name = "bpf_rdonly_cast", .kind = BTF_KIND_FUNC},
};

static struct bpf_link *links[PROGRAMS];
static int prog_handler;
static bool faults;

static struct bpf_program *program_of(struct bpf_object *object, size_t i)
{
	return bpf_object__find_program_by_name(object, programs[i].name);
}

/* Look up the tracepoints and the function in the kernel's type information. */
void programs_find(void)
{
	struct btf *kernel = btf__load_vmlinux_btf();

	for (size_t i = 0; kernel && i <= PROGRAMS; i++) {
		int id = btf__find_by_name_kind(kernel, wanted[i].name, wanted[i].kind);

		wanted[i].id = id > 0 ? (unsigned int)id : 0;
	}
	btf__free(kernel);
	faults = true;
	for (size_t i = FAULTS; i < PROGRAMS; i++)
		faults = faults && wanted[i].id;
	for (size_t i = FAULTS; !faults && i < PROGRAMS; i++)
		wanted[i].id = 0;
}

/* Replace placeholder calls by calls of the kernel function. */
static int name_function(struct bpf_program *program)
{
	size_t n = bpf_program__insn_cnt(program);
	struct bpf_insn *insns = malloc(n * sizeof(*insns));
	int err;

	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(program), n * sizeof(*insns));
	for (size_t i = 0; i < n; i++) {
		if (insns[i].code != (BPF_JMP | BPF_CALL) || insns[i].src_reg ||
		    insns[i].imm != TH_CALL_RDONLY_CAST)
			continue;
		insns[i].src_reg = BPF_PSEUDO_KFUNC_CALL;
		insns[i].imm = (int)wanted[CAST].id;
	}
	err = bpf_program__set_insns(program, insns, n);
	free(insns);
	return err;
}

/* Called by libbpf right before a program goes to the kernel. */
static int prepare_load(struct bpf_program *program, struct bpf_prog_load_opts *opts, long cookie)
{
	size_t i = 0;
	int err;

	(void)cookie;
	while (i < PROGRAMS && strcmp(programs[i].name, bpf_program__name(program)))
		i++;
	if (i == PROGRAMS || !wanted[i].id)
		return -ENOENT;
	opts->attach_btf_id = wanted[i].id;
	opts->expected_attach_type = BPF_TRACE_RAW_TP;
	err = bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
	return err ? err : name_function(program);
}

/* Load programs by number; to be called before the object is opened. */
int programs_prepare_by_number(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, how, .prog_prepare_load_fn = prepare_load);

	for (size_t i = 0; i <= PROGRAMS; i++)
		if (!wanted[i].id && (i == CAST || !programs[i].optional))
			return -ENOENT;
	prog_handler = libbpf_register_prog_handler("tp_btf+", BPF_PROG_TYPE_RAW_TRACEPOINT,
						    BPF_TRACE_RAW_TP, &how);
	return prog_handler < 0 ? prog_handler : 0;
}

/* Load programs by name, as libbpf does by default. */
void programs_prepare_by_name(void)
{
	if (prog_handler > 0)
		libbpf_unregister_prog_handler(prog_handler);
	prog_handler = 0;
}

void programs_choose(struct bpf_object *object, struct th_config *cfg, bool direct)
{
	for (size_t i = 0; i < PROGRAMS; i++)
		if (programs[i].optional)
			bpf_program__set_autoload(program_of(object, i), wanted[i].id);
	cfg->faults = faults;
	cfg->direct = direct && wanted[CAST].id;
}

int programs_attach(struct bpf_object *object)
{
	for (size_t i = 0; i < PROGRAMS; i++) {
		struct bpf_program *program = program_of(object, i);

		if (programs[i].optional && !wanted[i].id)
			continue;
		links[i] = program ? bpf_program__attach_trace(program) : NULL;
		if (!links[i] || libbpf_get_error(links[i])) {
			int err = links[i] ? (int)libbpf_get_error(links[i]) : -errno;

			links[i] = NULL;
			return err ? err : -ENOENT;
		}
	}
	return 0;
}

void programs_detach(void)
{
	for (size_t i = 0; i < PROGRAMS; i++) {
		bpf_link__destroy(links[i]);
		links[i] = NULL;
	}
}

/* Number of times a program was skipped because it was already running on that processor. */
unsigned long long programs_misses(struct bpf_object *object)
{
	unsigned long long sum = 0;

	for (size_t i = 0; i < PROGRAMS; i++) {
		struct bpf_program *program = program_of(object, i);
		struct bpf_prog_info info = {};
		unsigned int size = sizeof(info);

		if (program && bpf_program__fd(program) >= 0 &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
			sum += info.recursion_misses;
	}
	return sum;
}
