// SPDX-License-Identifier: Apache-2.0
/*
 * The library as the interpreter of a static program (enter.c): the kernel maps it and starts it at
 * th_interpreter (bare.S). It relocates itself, which a loader would do otherwise, patches the
 * program's own system-call sites, and continues with the program.
 */
#include <elf.h>
#include <linux/auxvec.h>
#include <linux/fcntl.h>
#include "bare.h"
#include "sites.h"

#define STACKS 256 /* threads inside the library at one time; same as in bare.S */
#define STACK 16384
#define EXE "/proc/self/exe"

extern const Elf64_Dyn own_dynamic[] __asm__("_DYNAMIC") __attribute__((visibility("hidden")));

unsigned long th_bare_busy[STACKS / 64]; /* one bit per stack */
char *th_bare_stacks;
static bool bare;
static TH_LARGE char true_exe[1024];

struct start {
	unsigned long entry, base, name;
	const Elf64_Phdr *parts;
	unsigned long part_count;
	struct th_program program;
};

static void read_start(long *sp, struct start *s)
{
	s->program.argc = (int)sp[0];
	s->program.argv = (char **)(sp + 1);
	s->program.envp = s->program.argv + s->program.argc + 1;
	char **end = s->program.envp;

	while (*end)
		end++;
	for (const Elf64_auxv_t *v = (const void *)(end + 1); v->a_type != AT_NULL; v++) {
		unsigned long value = v->a_un.a_val;

		switch (v->a_type) {
		case AT_ENTRY:
			s->entry = value;
			break;
		case AT_BASE:
			s->base = value;
			break;
		case AT_EXECFN:
			s->name = value;
			break;
		case AT_PHDR:
			s->parts = (const void *)value;
			break;
		case AT_PHNUM:
			s->part_count = value;
		}
	}
}

/* Relocate the library's own addresses; missing weak symbols stay NULL. */
static void relocate(unsigned long base)
{
	const Elf64_Rela *rows = NULL;
	unsigned long bytes = 0;

	for (const Elf64_Dyn *d = own_dynamic; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_RELA)
			rows = (const void *)(base + d->d_un.d_ptr);
		else if (d->d_tag == DT_RELASZ)
			bytes = d->d_un.d_val;
	}
	for (unsigned long i = 0; rows && i < bytes / sizeof(*rows); i++)
		if (ELF64_R_TYPE(rows[i].r_info) == R_X86_64_RELATIVE)
			*(unsigned long *)(base + rows[i].r_offset) =
				base + (unsigned long)rows[i].r_addend;
}

/* Return the program's class; read its true path, which the copy has after the interpreter's. */
static enum th_class read_copy(const struct start *s)
{
	for (unsigned long i = 0; i < s->part_count; i++) {
		const Elf64_Phdr *p = &s->parts[i];

		if (p->p_type != PT_INTERP)
			continue;
		long fd = th_sys(__NR_open, s->name, O_RDONLY | O_CLOEXEC, 0);

		if (!th_failed(fd)) {
			th_sys(__NR_pread64, fd, true_exe, sizeof(true_exe) - 1,
			       p->p_offset + p->p_filesz);
			th_sys(__NR_close, fd);
		}
		return (enum th_class)p->p_paddr;
	}
	return TH_CLASS_STATIC;
}

/* Go creates processes that share its memory: after an exec they could not release a stack. */
static void leave_processes(bool go)
{
	for (unsigned int nr = 0; go && nr < TH_CALLS; nr++)
		if (th_actions[nr] & (TH_ACT_FORK | TH_ACT_EXEC))
			th_actions[nr] = 0;
}

static void patch(const struct start *s, bool go)
{
	const char *const entries[ENTRIES] = {go ? th_bare_entry : th_entry,
					      go ? th_bare_fork_after : th_fork_entry_after,
					      th_cancel_entry};
	unsigned long head = (unsigned long)s->parts - sizeof(Elf64_Ehdr), bias = head;

	for (unsigned long i = 0; i < s->part_count; i++)
		if (s->parts[i].p_type == PT_LOAD && !s->parts[i].p_offset)
			bias = head - s->parts[i].p_vaddr;
	for (unsigned long i = 0; i < s->part_count; i++) {
		const Elf64_Phdr *p = &s->parts[i];
		struct text text = {
			.start = (unsigned char *)(bias + p->p_vaddr),
			.end = (unsigned char *)(bias + p->p_vaddr + p->p_filesz),
			.protection = p->p_flags & PF_R ? 5 : 4,
		};

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X))
			th_patch_text(&text, entries);
	}
}

unsigned long th_bare_start(long *sp);

/* Start the library in a static program; return the program's entry point. */
unsigned long th_bare_start(long *sp)
{
	struct start s = {0};

	read_start(sp, &s);
	relocate(s.base);
	bare = true;
	th_state = th_map_wiped(sizeof(*th_state));
	if (!th_state)
		return s.entry;
	bool go = read_copy(&s) == TH_CLASS_GO;

	if (go)
		th_bare_stacks = th_map(STACKS * STACK);
	th_exec_start(&s.program);
	if ((!go || th_bare_stacks) && th_dispatch_start(&s.program)) {
		leave_processes(go);
		patch(&s, go);
	}
	return s.entry;
}

bool th_is_bare(void)
{
	return bare;
}

bool th_true_exe(struct th_call *call)
{
	bool at = call->nr == __NR_readlinkat;
	char *to = (char *)call->arg[1 + at];
	long room = call->arg[2 + at];

	if (*true_exe != '/' || room <= 0 || !th_equal((const char *)call->arg[at], EXE))
		return false;
	long length = (long)th_len(true_exe);

	call->ret = length < room ? length : room;
	th_copy(to, true_exe, (size_t)call->ret);
	return true;
}
