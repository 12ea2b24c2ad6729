/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* libaio: submitted requests. */
#ifndef TRACEHINT_AIO_BPF_H
#define TRACEHINT_AIO_BPF_H

#include "io.bpf.h"

/* The part of struct iocb that is used, include/uapi/linux/aio_abi.h */
#define AIO_OPCODE 16
struct aio_request {
	u16 opcode;
	s16 priority;
	u32 fd;
	u64 buffer, bytes;
	s64 offset;
};

#define AIO_PREAD 0
#define AIO_PWRITE 1
#define AIO_PREADV 7
#define AIO_PWRITEV 8
#define AIO_VECTORS 64
#define AIO_REQUESTS 4096

#define AIO_CUT ~0ULL /* replaces the context: some requests had more vectors than are read */

struct vector {
	u64 base, len;
};

GLOBAL u64 vectors_length(u64 at, u64 n)
{
	struct vector v;
	u64 sum = 0;
	u32 i;

	for (i = 0; i < AIO_VECTORS; i++) {
		if (i >= n || bpf_probe_read_user(&v, sizeof(v), (void *)(at + i * sizeof(v))))
			break;
		sum += v.len;
	}
	return sum;
}

/* Requests are counted, an upper bound: completions can be reaped without a call. */
static long aio_step(u32 i, struct call *c)
{
	struct aio_request request;
	u64 at, len;
	u32 op;

	if (bpf_probe_read_user(&at, sizeof(at), (void *)(c->arg[2] + i * 8ULL)) ||
	    bpf_probe_read_user(&request, sizeof(request), (void *)(at + AIO_OPCODE)))
		return 1;
	if (request.opcode == AIO_PREAD || request.opcode == AIO_PREADV)
		op = OP(TH_READ, TH_HOW_AIO, 1);
	else if (request.opcode == AIO_PWRITE || request.opcode == AIO_PWRITEV)
		op = OP(TH_WRITE, TH_HOW_AIO, 1);
	else
		return 0;
	len = request.bytes;
	if (request.opcode >= AIO_PREADV && request.bytes > AIO_VECTORS)
		c->arg[0] = AIO_CUT;
	if (request.opcode >= AIO_PREADV)
		len = vectors_length(request.buffer, request.bytes);
	touched(c, request.fd, op, request.offset, len);
	return 0;
}

/* Inlined: the loop needs its context on the stack, where a copy of it does not fit. */
static __always_inline void do_io_submit(struct call *c)
{
	if (c->ret > 0)
		th_loop(c->ret > AIO_REQUESTS ? AIO_REQUESTS : c->ret, aio_step, c, 0);
}

#endif
