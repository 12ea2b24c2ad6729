// SPDX-License-Identifier: Apache-2.0
/* Who is told about calls. Adding one is one line. */
#include "hook.h"

const struct th_observer *const th_observers[] = {
	NULL,
};
