/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Differences between processors: numbers and arguments of system calls. */
#ifndef TRACEHINT_PROCESSOR_BPF_H
#define TRACEHINT_PROCESSOR_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#if defined(__TARGET_ARCH_x86)

#define CALL_PRCTL 157
#define CALL_PWRITEV2 328
#define CALL_PWRITEV2_32 379
#define TS_COMPAT 2

static __always_inline bool is_32bit_call(struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT;
}

static __always_inline u64 call_number(struct pt_regs *regs)
{
	return regs->orig_ax;
}

static __always_inline u64 first_argument(struct pt_regs *regs)
{
	return regs->di;
}

static __always_inline void arguments(struct pt_regs *regs, u64 *arg)
{
	arg[0] = regs->di;
	arg[1] = regs->si;
	arg[2] = regs->dx;
	arg[3] = regs->r10;
	arg[4] = regs->r8;
	arg[5] = regs->r9;
}

static __always_inline void arguments_32bit(struct pt_regs *regs, u64 *arg)
{
	arg[0] = (u32)regs->bx;
	arg[1] = (u32)regs->cx;
	arg[2] = (u32)regs->dx;
	arg[3] = (u32)regs->si;
	arg[4] = (u32)regs->di;
	arg[5] = (u32)regs->bp;
}

#elif defined(__TARGET_ARCH_arm64)

#define CALL_PRCTL 167
#define CALL_PWRITEV2 287
#define CALL_PWRITEV2_32 393
#define TIF_32BIT 22

static __always_inline bool is_32bit_call(struct task_struct *task)
{
	return task->thread_info.flags >> TIF_32BIT & 1;
}

static __always_inline u64 call_number(struct pt_regs *regs)
{
	return (u32)regs->syscallno;
}

/* regs[0] already contains the result. */
static __always_inline u64 first_argument(struct pt_regs *regs)
{
	return regs->orig_x0;
}

static __always_inline void arguments(struct pt_regs *regs, u64 *arg)
{
	arg[0] = regs->orig_x0;
	arg[1] = regs->regs[1];
	arg[2] = regs->regs[2];
	arg[3] = regs->regs[3];
	arg[4] = regs->regs[4];
	arg[5] = regs->regs[5];
}

/* 32-bit calls are counted as not followed: see rec/calls.c. */
static __always_inline void arguments_32bit(struct pt_regs *regs, u64 *arg)
{
	arguments(regs, arg);
}

#else
#error "the processor's calls are not known: add them here and in rec/calls.c"
#endif

#endif
