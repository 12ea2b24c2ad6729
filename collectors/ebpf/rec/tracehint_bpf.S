/* SPDX-License-Identifier: Apache-2.0 */
/* The BPF object as part of the loader; TRACEHINT_BPF_OBJECT is set by CMake. */
	.section .rodata
	.balign 16
	.globl tracehint_bpf_start
tracehint_bpf_start:
	.incbin TRACEHINT_BPF_OBJECT
	.globl tracehint_bpf_end
tracehint_bpf_end:
	.byte 0
	.section .note.GNU-stack,"",@progbits
