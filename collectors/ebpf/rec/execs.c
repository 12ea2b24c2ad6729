// SPDX-License-Identifier: Apache-2.0
/* Arguments of an exec, and the environment variables that name its task. */
#define _GNU_SOURCE
#include <string.h>
#include "rec.h"
#include "../../markers.h"

static bool is_task_marker(const char *text, size_t len)
{
	for (size_t i = 0; i < TASK_MARKERS; i++)
		if (len > strlen(task_markers[i]) &&
		    !memcmp(text, task_markers[i], strlen(task_markers[i])))
			return true;
	return false;
}

/* Write an exec to the spool; only its task variables leave this process's memory. */
bool exec_put(const struct th_exec *rec, size_t size)
{
	const char *argv = (const char *)(rec + 1), *env = argv + rec->argv_len;
	struct th_spool_exec out = {.epoch = rec->epoch, .argv_len = rec->argv_len};
	char chosen[4096];
	size_t used = 0;

	if (size < sizeof(*rec) + rec->argv_len + rec->env_len)
		return false;
	for (size_t at = 0; at < rec->env_len;) {
		size_t len = strnlen(env + at, rec->env_len - at) + 1;

		if (is_task_marker(env + at, len - 1) && at + len <= rec->env_len &&
		    used + len <= sizeof(chosen)) {
			memcpy(chosen + used, env + at, len);
			used += len;
		}
		at += len;
	}
	out.argv_off = spool_text(argv, rec->argv_len);
	out.env_len = (unsigned int)used;
	out.env_off = spool_text(chosen, used);
	spool_put(SPOOL_EXECS, &out, sizeof(out));
	return true;
}
