// SPDX-License-Identifier: Apache-2.0
/* Requests of libaio, recorded as submitted: only the code that reaps them has their results. */
#include <linux/aio_abi.h>
#include "record.h"

#define MAX_REQUESTS 4096
#define MAX_VECTORS 1024

struct vector {
	unsigned long base, length;
};

static unsigned long long bytes_of(const struct iocb *request)
{
	const struct vector *vectors = (const struct vector *)request->aio_buf;
	unsigned long long sum = 0;

	if (request->aio_lio_opcode == IOCB_CMD_PREAD || request->aio_lio_opcode == IOCB_CMD_PWRITE)
		return request->aio_nbytes;
	if (!th_readable(vectors,
			 sizeof(*vectors) * (request->aio_nbytes < MAX_VECTORS ? request->aio_nbytes
									       : MAX_VECTORS)))
		return 0;
	for (unsigned int i = 0; i < request->aio_nbytes && i < MAX_VECTORS; i++)
		sum += vectors[i].length;
	return sum;
}

static void submitted(struct rec *rec, const struct iocb *request)
{
	bool write = request->aio_lio_opcode == IOCB_CMD_PWRITE ||
		     request->aio_lio_opcode == IOCB_CMD_PWRITEV;
	bool read = request->aio_lio_opcode == IOCB_CMD_PREAD ||
		    request->aio_lio_opcode == IOCB_CMD_PREADV;
	unsigned long long start = (unsigned long long)request->aio_offset;
	unsigned long long len = bytes_of(request);
	unsigned long long size;

	if (!read && !write)
		return;
	if (read) {
		if (!size_of(request->aio_fildes, &size) || start >= size)
			return;
		if (len > size - start)
			len = size - start;
	}
	touched(rec, request->aio_fildes, TH_OP(write ? TH_WRITE : TH_READ, TH_HOW_AIO, 1), start,
		len);
}

/* Called before io_submit, because the program may reuse the requests right after it. */
void aio_submit(struct rec *rec, struct th_call *c)
{
	struct iocb *const *list = (struct iocb *const *)c->arg[2];

	for (long i = 0; i < c->arg[1] && i < MAX_REQUESTS; i++)
		if (th_readable(&list[i], sizeof(*list)) && th_readable(list[i], sizeof(**list)))
			submitted(rec, list[i]);
}
