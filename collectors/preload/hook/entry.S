// SPDX-License-Identifier: Apache-2.0
/*
 * From a patched site to C and back. A trampoline (sites.c) calls th_entry with the registers of
 * the system call, 128 bytes below the program's stack: leaf functions use those. As after the
 * system call itself, all registers but rax, rcx and r11 are as before. r11 is the site's address.
 *
 * Calls that make a process must not have a frame of ours on the stack while they run, the child
 * may return over it or have another stack: th_entry then returns to the trampoline's second
 * part, which makes the call and calls th_fork_entry_after in the parent.
 *
 * Reads and writes are told to th_quick_after where nobody else wants them: no struct is filled.
 *
 * The processor foresees where a return goes by the calls before it, and behind a system call those
 * are the kernel's: with some kernels' mitigations (AMD, "Safe RET") such a return takes 130 to 500 ns.
 * Behind calls of ours, which nobody returns from, it takes some: so we make them, for our returns and
 * for the program's, which is then faster than without us. Where the kernel has no such mitigation it
 * would send sixteen returns astray: who makes the recording has measured it (known_make.c).
 */
#include <asm/unistd.h>

#define FORK_PART 19 /* from after the first call in the trampoline to its second part */

.text
.macro save what
	push \what
	.cfi_adjust_cfa_offset 8
.endm
.macro restore register
	pop \register
	.cfi_adjust_cfa_offset -8
.endm
.macro enter
	save %r11 /* the site, for who unwinds: threads are cancelled within a call */
	.cfi_offset %rip, -(8 + 128 + 8)
	save $0	  /* th_call.note */
	save %rax /* th_call.ret */
	save %r9
	save %r8
	save %r10
	save %rdx
	save %rsi
	save %rdi
	save %rax /* th_call.nr */
	mov %rsp, %rdi
.endm
.macro leave_all
	restore %rcx
	restore %rdi
	restore %rsi
	restore %rdx
	restore %r10
	restore %r8
	restore %r9
	restore %rcx
	restore %rcx
	restore %r11
	.cfi_register %rip, %r11
.endm
/* As many as the program's functions that often return one after the other. */
.macro foresee
	cmpb $0, th_foreseen(%rip)
	je 8f
.rept 16
	call 9f
	int3
9:
	.cfi_adjust_cfa_offset 8
.endr
	add $16 * 8, %rsp
	.cfi_adjust_cfa_offset -16 * 8
8:
.endm
/* The caller is the site, not the trampoline, which no table describes: 8 bytes of its call and
   128 left alone lie between. */
.macro begin_at_site
	.cfi_startproc
	.cfi_def_cfa %rsp, 8 + 128
	.cfi_register %rip, %r11
.endm

.hidden th_foreseen
.weak th_quick_after /* not there with observers of others */
.hidden th_quick_after

.globl th_entry
.hidden th_entry
.type th_entry, @function
th_entry:
	begin_at_site
	cmp $__NR_pwrite64, %rax
	jbe 3f
	cmp $__NR_clone, %rax
	jb 1f
	cmp $__NR_vfork, %rax
	jbe 2f
	cmp $__NR_clone3, %rax
	je 2f
1:
	enter
	call th_dispatch
	leave_all
	ret
2:
	.cfi_def_cfa %rsp, 8 + 128
	enter
	call th_fork_before
	mov (%rsp), %rax
	leave_all
	addq $FORK_PART, (%rsp)
	ret
3:
	.cfi_def_cfa %rsp, 8 + 128
	lea th_quick(%rip), %rcx
	cmpb $0, (%rcx, %rax)
	je 1b
	save %r11
	.cfi_offset %rip, -(8 + 128 + 8)
	save %rax
	syscall
	foresee
	test %rax, %rax
	jle 4f
	save %rdi
	save %rsi
	save %rdx
	save %r10
	save %r8
	save %r9
	save %rax
	mov 56(%rsp), %rsi /* the number */
	mov %r10, %rdx
	mov %rax, %rcx
	call th_quick_after
	restore %rax
	restore %r9
	restore %r8
	restore %r10
	restore %rdx
	restore %rsi
	restore %rdi
4:
	restore %rcx
	restore %r11
	.cfi_register %rip, %r11
	ret
	.cfi_endproc
.size th_entry, . - th_entry

.globl th_fork_entry_after
.hidden th_fork_entry_after
.type th_fork_entry_after, @function
th_fork_entry_after:
	begin_at_site
	enter
	call th_fork_after
	mov (%rsp), %rax
	leave_all
	ret
	.cfi_endproc
.size th_fork_entry_after, . - th_fork_entry_after

/* A system call of ours. Its return is a jump: that would be the first one that is not foreseen. */
.globl th_syscall
.hidden th_syscall
.type th_syscall, @function
th_syscall:
	.cfi_startproc
	syscall
	foresee
	restore %rcx
	.cfi_register %rip, %rcx
	jmp *%rcx
	.cfi_endproc
.size th_syscall, . - th_syscall

.section .note.GNU-stack, "", @progbits
