// SPDX-License-Identifier: Apache-2.0
/*
 * From a patched site to C and back. A trampoline (patch.c) calls th_entry with the registers of
 * the system call, 128 bytes below the program's stack pointer: leaf functions use those bytes.
 * All registers but rax, rcx and r11 are preserved, as by the call. r11 points past the site.
 *
 * Calls that create a process must not have a frame of the library on the stack while they run: the
 * child may return over it or have another stack. th_entry then returns to the trampoline's second
 * part, which makes the call and calls th_fork_entry_after in the parent.
 *
 * th_quick_after handles reads and writes that no other observer wants: no struct is filled.
 */
#include <asm/unistd.h>

#define TH_CALLS 512
#define FORK_PART 19 /* from the end of the first call in the trampoline to its second part */

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
	save %r11 /* the site, for unwinders: threads are cancelled within a call */
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
/* The caller is the site, not the trampoline, which has no unwind table. In between are the 8 bytes
   of the trampoline's return address and the 128 unused bytes. */
.macro begin_at_site
	.cfi_startproc
	.cfi_def_cfa %rsp, 8 + 128
	.cfi_register %rip, %r11
.endm

.weak th_quick_after /* missing if linked with other observers */
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

/*
 * Replaces __syscall_cancel_arch, whose address is in r11: rdi is the thread's state, rsi the
 * number; rdx, rcx, r8, r9 and two words on the stack are the arguments. The frame is ordinary,
 * because a cancelled thread is unwound through it. Calls of no interest continue in the original.
 */
.hidden th_actions
.globl th_cancel_entry
.hidden th_cancel_entry
.type th_cancel_entry, @function
th_cancel_entry:
	.cfi_startproc
	cmp $TH_CALLS, %rsi
	jae 1f
	lea th_actions(%rip), %rax
	cmpb $0, (%rax, %rsi)
	jne 2f
1:
	jmp *%r11
2:
	save %rdi
	save %r11
	save $0 /* th_call.note */
	save $0 /* th_call.ret */
	save 48(%rsp)
	save 48(%rsp)
	save %r9
	save %r8
	save %rcx
	save %rdx
	save %rsi /* th_call.nr */
	mov %rsp, %rdi
	mov 72(%rsp), %rsi
	mov 80(%rsp), %rdx
	call th_dispatch_cancel
	restore %rsi
	restore %rdx
	restore %rcx
	restore %r8
	restore %r9
	add $16, %rsp
	.cfi_adjust_cfa_offset -16
	restore %r10 /* th_call.ret */
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	restore %r11
	restore %rdi
	test %al, %al
	je 1b
	mov %r10, %rax
	ret
	.cfi_endproc
.size th_cancel_entry, . - th_cancel_entry

/* th_call_cancel(call, function, thread): call the function that th_cancel_entry replaces. */
.globl th_call_cancel
.hidden th_call_cancel
.type th_call_cancel, @function
th_call_cancel:
	.cfi_startproc
	mov %rdi, %r10
	mov %rsi, %rax
	mov %rdx, %rdi
	mov (%r10), %rsi
	mov 8(%r10), %rdx
	mov 16(%r10), %rcx
	mov 24(%r10), %r8
	mov 32(%r10), %r9
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	save 48(%r10)
	save 40(%r10)
	call *%rax
	add $24, %rsp
	.cfi_adjust_cfa_offset -24
	ret
	.cfi_endproc
.size th_call_cancel, . - th_call_cancel

.section .note.GNU-stack, "", @progbits
