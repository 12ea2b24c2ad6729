// SPDX-License-Identifier: Apache-2.0
/* Copying bytes between files without reading them into the process; file sizes. */
#include "workload.h"
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>

static char buffer[65536];

static int copy_range(void)
{
	int in = make("in", 30011), out = make("out", 0);
	off_t from = 1009, to = 501;

	must(copy_file_range(in, &from, out, &to, 20011, 0) == 20011, "copy_file_range");
	saw("in", "read", "copy_file_range", 1009, 21020, 20011, 1);
	saw("out", "write", "copy_file_range", 501, 20512, 20011, 1);
	lseek(in, 0, SEEK_SET);
	lseek(out, 40009, SEEK_SET);
	must(copy_file_range(in, NULL, out, NULL, 101, 0) == 101, "copy_file_range");
	saw("in", "read", "copy_file_range", 0, 101, 101, 1);
	saw("out", "write", "copy_file_range", 40009, 40110, 101, 1);
	return 0;
}

static int copy_sendfile(void)
{
	int in = make("in", 30011), out = make("out", 0);
	off_t from = 307;

	must(sendfile(out, in, &from, 5003) == 5003, "sendfile");
	saw("in", "read", "sendfile", 307, 5310, 5003, 1);
	saw("out", "write", "sendfile", 0, 5003, 5003, 1);
	lseek(in, 10007, SEEK_SET);
	must(sendfile(out, in, NULL, 2003) == 2003, "sendfile");
	saw("in", "read", "sendfile", 10007, 12010, 2003, 1);
	saw("out", "write", "sendfile", 5003, 7006, 2003, 1);
	return 0;
}

static int copy_splice(void)
{
	int in = make("in", 30011), out = make("out", 0), a[2], b[2];
	off_t from = 1013, to = 503;

	must(!pipe(a) && !pipe(b), "pipe");
	must(splice(in, &from, a[1], NULL, 4001, 0) == 4001, "splice in");
	must(tee(a[0], b[1], 4001, 0) == 4001, "tee"); /* transfers no file bytes */
	must(splice(a[0], NULL, out, &to, 4001, 0) == 4001, "splice out");
	saw("in", "read", "splice", 1013, 5014, 4001, 1);
	saw("out", "write", "splice", 503, 4504, 4001, 1);
	return 0;
}

static int copy_clone(void)
{
	int in = make("in", 65536), out = make("out", 0);

	if (ioctl(out, FICLONE, in))
		return SKIPPED; /* this file system shares no blocks */
	saw("in", "read", "clone", 0, 65536, 65536, 1);
	saw("out", "write", "clone", 0, 65536, 65536, 1);
	return 0;
}

static int copy_fallocate(void)
{
	int fd = make("f", 65536);

	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 4096))
		return SKIPPED;
	saw("f", "deallocate", "fallocate", 8192, 12288, 0, 1);
	if (!fallocate(fd, FALLOC_FL_ZERO_RANGE, 16384, 8192))
		saw("f", "write", "fallocate", 16384, 24576, 8192, 1);
	must(!fallocate(fd, 0, 65536, 8192), "fallocate");
	return 0;
}

static int copy_truncate(void)
{
	int fd = make("f", 10007);

	must(!ftruncate(fd, 5003), "ftruncate");
	saw("f", "truncate", "truncate", 5003, 5003, 0, 1);
	close(fd);
	must(!truncate("f", 2003), "truncate");
	saw("f", "truncate", "truncate", 2003, 2003, 0, 1);
	fd = open("f", O_WRONLY | O_TRUNC);
	saw("f", "truncate", "open", 0, 0, 0, 1);
	must(write(fd, buffer, 101) == 101, "write");
	saw("f", "write", "write", 0, 101, 101, 1);
	return 0;
}

const struct workload copy_cases[] = {
	{"copy_range", copy_range},
	{"copy_sendfile", copy_sendfile},
	{"copy_splice", copy_splice},
	{"copy_clone", copy_clone},
	{"copy_fallocate", copy_fallocate},
	{"copy_truncate", copy_truncate},
	{0},
};
