// SPDX-License-Identifier: Apache-2.0
/* Clocks: the time stamp counter with CLOCK_BOOTTIME, also for the recorder, and CPU time. */
#include "record.h"

#define CLOCK_BOOTTIME 7

#define CLOCK_PROCESS_CPUTIME 2

unsigned long long cpu_used(void)
{
	long at[2] = {0, 0};

	th_sys(__NR_clock_gettime, CLOCK_PROCESS_CPUTIME, at);
	return (unsigned long long)at[0] * 1000000000ULL + (unsigned long long)at[1];
}

void clock_sample(struct th_clock *clock)
{
	long at[2] = {0, 0};

	th_sys(__NR_clock_gettime, CLOCK_BOOTTIME, at);
	clock->ticks = now_ticks();
	clock->boot_ns = (unsigned long long)at[0] * 1000000000ULL + (unsigned long long)at[1];
}

__attribute__((visibility("default"))) void tracehint_clock(struct th_clock *clock);

void tracehint_clock(struct th_clock *clock)
{
	clock_sample(clock);
}
