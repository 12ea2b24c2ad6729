// SPDX-License-Identifier: Apache-2.0
/*
 * From a patched site to C and back. A trampoline (sites.c) calls th_entry with the registers of
 * the system call, 128 bytes below the program's stack: leaf functions use those. As after the
 * system call itself, all registers but rax, rcx and r11 are as before.
 *
 * Calls that make a process must not have a frame of ours on the stack while they run, the child
 * may return over it or have another stack: th_entry then returns to the trampoline's second
 * part, which makes the call and calls th_fork_entry_after in the parent.
 */
#include <asm/unistd.h>

#define FORK_PART 19 /* from after the first call in the trampoline to its second part */

.text
.macro enter
	push $0	  /* th_call.note */
	push %rax /* th_call.ret */
	push %r9
	push %r8
	push %r10
	push %rdx
	push %rsi
	push %rdi
	push %rax /* th_call.nr */
	mov %rsp, %rdi
.endm
.macro leave_all
	pop %rcx
	pop %rdi
	pop %rsi
	pop %rdx
	pop %r10
	pop %r8
	pop %r9
	pop %rcx
	pop %rcx
.endm

.globl th_entry
.hidden th_entry
.type th_entry, @function
th_entry:
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
	enter
	call th_fork_before
	mov (%rsp), %rax
	leave_all
	addq $FORK_PART, (%rsp)
	ret
.size th_entry, . - th_entry

.globl th_fork_entry_after
.hidden th_fork_entry_after
.type th_fork_entry_after, @function
th_fork_entry_after:
	enter
	call th_fork_after
	mov (%rsp), %rax
	leave_all
	ret
.size th_fork_entry_after, . - th_fork_entry_after

.section .note.GNU-stack, "", @progbits
