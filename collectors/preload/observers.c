// SPDX-License-Identifier: Apache-2.0
/* The table of observers; adding one takes one line. */
#include "hook.h"

extern const struct th_observer th_job, th_place, th_recorder, th_tagger;

const struct th_observer *const th_observers[] = {
	&th_job, /* first: it may execute another program */
	&th_place, &th_recorder, &th_tagger, NULL,
};
