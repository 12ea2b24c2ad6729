// SPDX-License-Identifier: Apache-2.0
/* Arguments of programs, and the variables that name a task. */
#include "process.h"
#include "../../markers.h"

/* Variables that name a task; nothing else of the environment is recorded. */
static bool is_marker(const char *entry)
{
	for (unsigned int i = 0; i < TASK_MARKERS; i++)
		if (th_starts(entry, task_markers[i]))
			return true;
	return false;
}

static unsigned int copy_texts(char *to, unsigned int most, char *const *texts, bool markers,
			       bool *cut)
{
	unsigned int at = 0;

	for (; texts && *texts; texts++) {
		unsigned int n = (unsigned int)th_len(*texts) + 1;

		if (markers && !is_marker(*texts))
			continue;
		if (at + n > most) {
			*cut = true;
			n = most - at;
		}
		if (to)
			th_copy(to + at, *texts, n);
		at += n;
		if (at == most)
			break;
	}
	return at;
}

unsigned int arguments_size(char *const *argv)
{
	bool cut = false;

	return copy_texts(NULL, TH_MAX_ARGV, argv, false, &cut);
}

/* Store the arguments, followed by the task markers. */
void put_arguments(struct rec *rec, char *const *argv, char *const *envp)
{
	bool cut = false;
	unsigned int args = copy_texts(NULL, TH_MAX_ARGV, argv, false, &cut);
	unsigned int env = copy_texts(NULL, TH_MAX_ARGV, envp, true, &cut);
	unsigned int size = (args + env + 8 + 7) & ~7U;
	char *at = record_new(rec, TH_PATH, size);

	if (cut || !at)
		lose(rec, TH_LOST_ARGV_CUT, 1);
	if (!at)
		return;
	copy_texts(at, args, argv, false, &cut);
	copy_texts(at + args, env, envp, true, &cut);
	struct th_spool_exec *exec = &rec->page->exec;

	exec->argv_off = arena_offset(at);
	exec->argv_len = args;
	exec->env_off = exec->argv_off + args;
	exec->env_len = env;
	exec->epoch = rec->page->proc.epoch;
}
