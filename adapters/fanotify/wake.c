// SPDX-License-Identifier: Apache-2.0
/*
 * SIGSTOP cannot be refused, but a timer of one's own goes on and its signal SIGCONT ends the stop:
 * who answers the kernel must not stand still. It also ends a call that waits, so whoever waits
 * for a question shows that he lives.
 */
#include <signal.h>
#include <time.h>
#include "agent.h"

#define ASLEEP_NS 250000000

static void nothing(int signal)
{
	(void)signal; /* a signal that is ignored would not set the timer again */
}

bool stay_awake(void)
{
	timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
	struct itimerspec soon = {.it_value = {.tv_nsec = ASLEEP_NS},
				  .it_interval = {.tv_nsec = ASLEEP_NS}};
	struct sigaction action = {.sa_handler = nothing};

	return !sigaction(SIGCONT, &action, NULL) &&
	       !timer_create(CLOCK_MONOTONIC, &event, &timer) &&
	       !timer_settime(timer, 0, &soon, NULL);
}
