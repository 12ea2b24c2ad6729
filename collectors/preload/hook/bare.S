// SPDX-License-Identifier: Apache-2.0
/*
 * th_interpreter: the kernel starts a static program with this library here (bare.c).
 *
 * th_bare_entry: th_entry (entry.S) for Go. A goroutine's stack is too small for the library: calls
 * of no interest are made at once, others on a stack of the library; if none is free, they are made
 * unobserved. Calls that create a process are made by the trampoline's second part.
 */
#include <asm/unistd.h>

#define FORK_PART 19
#define STACKS 256
#define STACK_BITS 14
#define TH_CALLS 512

.text
.globl th_interpreter
.hidden th_interpreter
.type th_interpreter, @function
th_interpreter:
	mov %rsp, %rdi
	mov %rsp, %rbx
	call th_bare_start
	mov %rbx, %rsp
	xor %ebx, %ebx
	xor %edx, %edx
	jmp *%rax
.size th_interpreter, . - th_interpreter

.globl th_bare_entry
.hidden th_bare_entry
.type th_bare_entry, @function
th_bare_entry:
	cmp $__NR_clone, %rax
	jb 1f
	cmp $__NR_vfork, %rax
	jbe 4f
	cmp $__NR_clone3, %rax
	je 4f
1:
	cmp $TH_CALLS, %rax
	jae 5f
	lea th_actions(%rip), %r11
	cmpb $0, (%r11, %rax)
	je 5f
	mov $(STACKS - 1), %ecx
2:
	lock btsq %rcx, th_bare_busy(%rip)
	jnc 3f
	dec %ecx
	jns 2b
	jmp 5f
3:
	shl $STACK_BITS, %rcx
	mov th_bare_stacks(%rip), %r11
	lea (1 << STACK_BITS)(%r11, %rcx), %r11
	mov %rsp, -8(%r11)
	mov %rcx, -16(%r11)
	lea -24(%r11), %rsp
	push $0   /* th_call.note */
	push %rax /* th_call.ret */
	push %r9
	push %r8
	push %r10
	push %rdx
	push %rsi
	push %rdi
	push %rax /* th_call.nr */
	mov %rsp, %rdi
	call th_dispatch
	pop %rcx
	pop %rdi
	pop %rsi
	pop %rdx
	pop %r10
	pop %r8
	pop %r9
	pop %rcx
	pop %rcx
	mov 8(%rsp), %rcx
	mov 16(%rsp), %rsp
	shr $STACK_BITS, %rcx
	lock btrq %rcx, th_bare_busy(%rip)
	ret
4:
	addq $FORK_PART, (%rsp)
	ret
5:
	syscall
	ret
.size th_bare_entry, . - th_bare_entry

.globl th_bare_fork_after
.hidden th_bare_fork_after
.type th_bare_fork_after, @function
th_bare_fork_after:
	ret
.size th_bare_fork_after, . - th_bare_fork_after

.section .note.GNU-stack, "", @progbits
