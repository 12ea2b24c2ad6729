// SPDX-License-Identifier: Apache-2.0
/* libaio's system calls; requests are visible, results only to the process that reaps them. */
#include "workload.h"
#include <linux/aio_abi.h>
#include <sys/uio.h>

static char buffers[8][65536];

static int aio_scattered(void)
{
	aio_context_t context = 0;
	struct iocb requests[7] = {}, *list[7];
	struct io_event events[7];
	int fd = make("f", 100003);

	if (syscall(SYS_io_setup, 16, &context))
		return SKIPPED;
	for (int i = 0; i < 7; i++) {
		requests[i] =
			(struct iocb){.aio_fildes = (unsigned int)fd,
				      .aio_lio_opcode = i < 5 ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE,
				      .aio_buf = (unsigned long)buffers[i],
				      .aio_nbytes = 1009,
				      .aio_offset = i * 10007};
		list[i] = &requests[i];
	}
	must(syscall(SYS_io_submit, context, 7L, list) == 7, "io_submit");
	must(syscall(SYS_io_getevents, context, 7L, 7L, events, NULL) == 7, "io_getevents");
	saw("f", "read", "aio", 0, 4 * 10007 + 1009, -1, -1);
	saw("f", "write", "aio", 5 * 10007, 6 * 10007 + 1009, -1, -1);
	return 0;
}

const struct workload aio_cases[] = {
	{"aio_scattered", aio_scattered},
	{0},
};
