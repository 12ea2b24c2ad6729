// SPDX-License-Identifier: Apache-2.0
/* Metadata of a recording: start.json at its start, end.json at its end. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "rec.h"

unsigned long long clock_ns(int clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
}

/* Write how BOOTTIME maps to REALTIME, from the tightest of several paired readings. */
void stamp_start(const struct options *o, pid_t command)
{
	unsigned long long best = ~0ULL, boot = 0, real = 0;
	char text[512];

	for (int i = 0; i < 16; i++) {
		unsigned long long a = clock_ns(CLOCK_BOOTTIME), r = clock_ns(CLOCK_REALTIME);
		unsigned long long b = clock_ns(CLOCK_BOOTTIME);

		if (b - a < best) {
			best = b - a;
			boot = a + (b - a) / 2;
			real = r;
		}
	}
	snprintf(text, sizeof(text),
		 "{\"version\": %d, \"boot_ns\": %llu, \"real_ns\": %llu, \"error_ns\": %llu, "
		 "\"pid\": %d, \"command\": %d, \"joined\": %s}\n",
		 TH_SPOOL_VERSION, boot, real, best, (int)getpid(), (int)command,
		 o->listen >= 0 ? "true" : "false");
	if (spool_write_json("start.json", text))
		fprintf(stderr, "tracehint-rec: %s: cannot write start.json\n", o->spool);
}

void stamp_end(const struct options *o, int status, unsigned int left, unsigned long long load_ns)
{
	struct rusage self;
	char text[512];

	getrusage(RUSAGE_SELF, &self);
	snprintf(text, sizeof(text),
		 "{\"exit_status\": %d, \"signal\": %d, \"outlived\": %u, \"spool_lost\": %llu, "
		 "\"max_rss_kb\": %ld, \"cpu_ms\": %ld, \"load_ms\": %llu}\n",
		 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		 WIFSIGNALED(status) ? WTERMSIG(status) : 0, left, spool_lost(), self.ru_maxrss,
		 (self.ru_utime.tv_sec + self.ru_stime.tv_sec) * 1000 +
			 (self.ru_utime.tv_usec + self.ru_stime.tv_usec) / 1000,
		 load_ns / 1000000);
	if (spool_write_json("end.json", text))
		fprintf(stderr, "tracehint-rec: %s: cannot write end.json\n", o->spool);
}
