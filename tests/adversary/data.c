// SPDX-License-Identifier: Apache-2.0
/* Reads and writes whose offset or size differs from the arguments. */
#include "../workloads/workload.h"
#include <linux/falloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

#ifndef RWF_NOAPPEND
#define RWF_NOAPPEND 0x20
#endif

static char buffer[1 << 20];

/* Linux appends with O_APPEND, whatever offset is given. */
static int data_pwrite_append(void)
{
	int fd = make("f", 1013);

	close(fd);
	fd = open("f", O_WRONLY | O_APPEND);
	must(pwrite(fd, buffer, 211, 5) == 211, "pwrite");
	saw("f", "write", "write", 1013, 1224, 211, 1);
	must(write(fd, buffer, 101) == 101, "write");
	saw("f", "write", "write", 1224, 1325, 101, 1);
	return 0;
}

static int data_rwf_append(void)
{
	struct iovec v = {buffer, 307};
	int fd = make("f", 2003);

	must(pwritev2(fd, &v, 1, 11, RWF_APPEND) == 307, "RWF_APPEND");
	saw("f", "write", "write", 2003, 2310, 307, 1);
	must(pwritev2(fd, &v, 1, 17, 0) == 307, "no flag");
	saw("f", "write", "write", 17, 324, 307, 1);
	close(fd);
	fd = open("f", O_WRONLY | O_APPEND);
	if (pwritev2(fd, &v, 1, 1009, RWF_NOAPPEND) != 307)
		return SKIPPED; /* Linux 6.9 */
	saw("f", "write", "write", 1009, 1316, 307, 1);
	return 0;
}

/* Calls that transfer nothing reveal nothing about the file's size. */
static int data_nothing_moved(void)
{
	int fd = make("f", 0);

	must(write(fd, buffer, 1009) == 1009, "write");
	saw("f", "write", "write", 0, 1009, 1009, 1);
	close(fd);
	fd = open("f", O_RDWR);
	must(read(fd, buffer, 0) == 0, "read nothing");
	must(write(fd, buffer, 0) == 0, "write nothing");
	must(pread(fd, buffer, 100, 1000003) == 0, "read behind the end");
	must(lseek(fd, 500009, SEEK_SET) == 500009 && read(fd, buffer, 10) == 0, "behind the end");
	close(fd);
	fd = open("f", O_WRONLY | O_APPEND);
	must(write(fd, buffer, 103) == 103, "append");
	saw("f", "write", "write", 1009, 1112, 103, 1);
	return 0;
}

/* The same for a file that the recorder knows from no other calls. */
static int data_nothing_moved_old(void)
{
	int fd = open("../old", O_RDONLY);

	must(read(fd, buffer, 0) == 0, "read nothing");
	must(pread(fd, buffer, 100, 1000003) == 0, "read behind the end");
	close(fd);
	must(!rename("../old", "old"), "rename");
	fd = open("old", O_WRONLY | O_APPEND);
	must(write(fd, buffer, 103) == 103, "append");
	saw("old", "write", "write", 5003, 5106, 103, 1);
	return 0;
}

static int data_large_offsets(void)
{
	long at = (5L << 30) + 7;
	int fd = make("f", 0);

	must(pwrite(fd, buffer, 409, at) == 409, "pwrite");
	saw("f", "write", "write", at, at + 409, 409, 1);
	must(lseek(fd, 1L << 40, SEEK_SET) == 1L << 40 && write(fd, buffer, 17) == 17, "write");
	saw("f", "write", "write", 1L << 40, (1L << 40) + 17, 17, 1);
	must(pread(fd, buffer, 503, at - 100) == 503, "pread");
	saw("f", "read", "read", at - 100, at + 403, 503, 1);
	ftruncate(fd, 0);
	saw("f", "truncate", "truncate", 0, 0, 0, 1);
	return 0;
}

static int data_short_write(void)
{
	struct rlimit limit = {10007, 10007};
	int fd = make("f", 0);

	signal(SIGXFSZ, SIG_IGN);
	must(!setrlimit(RLIMIT_FSIZE, &limit), "setrlimit");
	must(write(fd, buffer, 1 << 20) == 10007, "short write");
	must(write(fd, buffer, 1) < 0 && errno == EFBIG, "no write");
	limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
	setrlimit(RLIMIT_FSIZE, &limit); /* for the printed facts */
	saw("f", "write", "write", 0, 10007, 10007, 1);
	return 0;
}

/* O_TRUNC truncates a file that is opened read-only. */
static int data_truncate_read_only(void)
{
	int fd = make("f", 3001);

	close(fd);
	fd = open("f", O_RDONLY | O_TRUNC);
	must(fd >= 0 && !lseek(fd, 0, SEEK_END), "truncated");
	saw("f", "truncate", "open", 0, 0, 0, 1);
	return 0;
}

/* Bytes behind the range move; the file's size changes accordingly. */
static int data_shift_ranges(void)
{
	int fd = make("f", 65536), more;

	if (fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 8192, 4096))
		return SKIPPED;
	saw("f", "read", "fallocate", 12288, 65536, 53248, 1);
	saw("f", "write", "fallocate", 8192, 61440, 53248, 1);
	more = open("f", O_WRONLY | O_APPEND);
	must(write(more, buffer, 101) == 101, "append");
	saw("f", "write", "write", 61440, 61541, 101, 1);
	must(!ftruncate(fd, 61440), "ftruncate");
	saw("f", "truncate", "truncate", 61440, 61440, 0, 1);
	must(!fallocate(fd, FALLOC_FL_INSERT_RANGE, 4096, 8192), "insert");
	saw("f", "read", "fallocate", 4096, 61440, 57344, 1);
	saw("f", "write", "fallocate", 12288, 69632, 57344, 1);
	saw("f", "deallocate", "fallocate", 4096, 12288, 0, 1);
	must(write(more, buffer, 103) == 103, "append");
	saw("f", "write", "write", 69632, 69735, 103, 1);
	return 0;
}

/* Reserved space is neither a write nor a hole. */
static int data_reserve(void)
{
	int fd = make("f", 8192), more;

	must(!fallocate(fd, FALLOC_FL_KEEP_SIZE, 8192, 65536), "keep size");
	more = open("f", O_WRONLY | O_APPEND);
	must(write(more, buffer, 101) == 101, "append");
	saw("f", "write", "write", 8192, 8293, 101, 1);
	must(!fallocate(fd, 0, 0, 20011), "grow");
	must(write(more, buffer, 103) == 103, "append");
	saw("f", "write", "write", 20011, 20114, 103, 1);
	return 0;
}

/* Copies within one file and into another, with offsets and without. */
static int data_copy_within(void)
{
	long from = 0, to = 50021;
	int fd = make("f", 40009), out = make("g", 0);

	must(copy_file_range(fd, &from, fd, &to, 10007, 0) == 10007, "copy_file_range");
	saw("f", "read", "copy_file_range", 0, 10007, 10007, 1);
	saw("f", "write", "copy_file_range", 50021, 60028, 10007, 1);
	from = 101;
	must(sendfile(out, fd, &from, 2003) == 2003, "sendfile");
	saw("f", "read", "sendfile", 101, 2104, 2003, 1);
	saw("g", "write", "sendfile", 0, 2003, 2003, 1);
	lseek(fd, 3001, SEEK_SET);
	must(sendfile(out, fd, NULL, 1009) == 1009, "sendfile");
	saw("f", "read", "sendfile", 3001, 4010, 1009, 1);
	saw("g", "write", "sendfile", 2003, 3012, 1009, 1);
	return 0;
}

static int data_flag_append_later(void)
{
	int fd = make("f", 701);

	lseek(fd, 0, SEEK_SET);
	must(!fcntl(fd, F_SETFL, O_APPEND), "F_SETFL");
	must(write(fd, buffer, 101) == 101, "append");
	saw("f", "write", "write", 701, 802, 101, 1);
	must(!fcntl(fd, F_SETFL, 0), "F_SETFL");
	must(pwrite(fd, buffer, 103, 7) == 103, "pwrite");
	saw("f", "write", "write", 7, 110, 103, 1);
	return 0;
}

/* Killed within a call: the bytes written until then count. */
static int data_killed_writer(void)
{
	struct stat st = {0};
	pid_t pid;

	pid = fork();
	if (!pid) {
		char *much = mmap(NULL, 1L << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		int fd = open("f", O_WRONLY | O_CREAT, 0644);

		must(write(fd, much, 1L << 30) > 0, "write");
		_exit(0);
	}
	while (stat("f", &st) || st.st_size < 1 << 20)
		usleep(100);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	must(!stat("f", &st), "stat");
	if (st.st_size < 1L << 30)
		saw_by(pid, "f", "write", "write", 0, st.st_size, st.st_size, 1);
	must(!truncate("f", 0), "truncate");
	saw("f", "truncate", "truncate", 0, 0, 0, 1);
	return st.st_size < 1L << 30 ? 0 : SKIPPED;
}

const struct workload data_cases[] = {
	{"data_pwrite_append", data_pwrite_append},
	{"data_rwf_append", data_rwf_append},
	{"data_nothing_moved", data_nothing_moved},
	{"data_nothing_moved_old", data_nothing_moved_old},
	{"data_large_offsets", data_large_offsets},
	{"data_short_write", data_short_write},
	{"data_truncate_read_only", data_truncate_read_only},
	{"data_shift_ranges", data_shift_ranges},
	{"data_reserve", data_reserve},
	{"data_copy_within", data_copy_within},
	{"data_flag_append_later", data_flag_append_later},
	{"data_killed_writer", data_killed_writer},
	{0},
};
