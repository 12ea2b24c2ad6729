// SPDX-License-Identifier: Apache-2.0
/*
 * Replaces the first program of a batch job by the recorder of the job, which runs the program as
 * its child. The environment shows which program is the first: TRACEHINT_JOB is the job of the
 * parent processes, while the batch system's variables name another one.
 *
 * TRACEHINT_JOBS is PYTHON:SCRIPT (collectors/preload/jobs.py). If either does not exist, on a node
 * without that directory or after the end of the run, the program runs unmodified.
 */
#include "../hook.h"

#define JOB "TRACEHINT_JOB"
#define ARENA "TRACEHINT_RECORD"
#define MOST_TEXT 512
#define MOST_WORDS 65536
#define OUR_WORDS 5 /* python, -IS, script, program and NULL */

/* The same as VARIABLES of collectors/preload/jobs.py: tests/test_run_jobs.py compares both. */
static const char *const variables[] = {
	"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURMD_NODENAME",
	"PBS_JOBID",	"LSB_JOBID",	 "LSB_JOBINDEX",
};

enum { STEP = 1, PROCESS, NODE }; /* indexes of `variables` */

/* Variables that are not valid on another node, or outside the processes of the run. */
static const char *const left_out[] = {JOB "=", ARENA "=", "TRACEHINT_RECORDING="};

static TH_LARGE char mark[sizeof(JOB) + MOST_TEXT];
static TH_LARGE char python[4096], executable[4096];

/* Write "TRACEHINT_JOB=" and the values, each with a slash after it. False: no job, or too long. */
static bool write_mark(char *const *envp)
{
	size_t used = sizeof(JOB);
	bool any = false;

	th_copy(mark, JOB "=", sizeof(JOB));
	for (unsigned int i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *value = th_variable(envp, variables[i]);
		size_t n = value ? th_len(value) : 0;

		if (used + n + 2 > sizeof(mark))
			return false;
		th_copy(mark + used, value, n);
		used += n;
		mark[used++] = '/';
		any |= n > 0;
	}
	mark[used] = '\0';
	return any;
}

static size_t count_words(char *const *words)
{
	size_t n = 0;

	while (n < MOST_WORDS && words[n])
		n++;
	return n;
}

static bool is_left_out(const char *entry)
{
	for (unsigned int i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		if (th_starts(entry, left_out[i]))
			return true;
	return false;
}

static bool can_be_used(const char *path, int how)
{
	return !th_failed(th_sys(__NR_access, path, how));
}

/* Split PYTHON:SCRIPT; return the script, or NULL if one of them cannot be used here. */
static const char *script_of(const char *value)
{
	size_t n = 0;

	while (value[n] && value[n] != ':')
		n++;
	if (!value[n] || n >= sizeof(python))
		return NULL;
	th_copy(python, value, n);
	python[n] = '\0';
	return can_be_used(python, 1 /* X_OK */) && can_be_used(value + n + 1, 4 /* R_OK */)
		       ? value + n + 1
		       : NULL;
}

static void become_recorder(const char *script, const struct th_program *program)
{
	size_t words = count_words(program->argv), variables_there = count_words(program->envp);
	long n = th_sys(__NR_readlink, "/proc/self/exe", executable, sizeof(executable) - 1);
	char **table = th_map((words + variables_there + OUR_WORDS + 2) * sizeof(*table));
	char **argv = table, **envp = table + words + OUR_WORDS;
	size_t kept = 0;

	if (!table || th_failed(n) || words == MOST_WORDS || variables_there == MOST_WORDS)
		return; /* the table is freed when the program ends */
	executable[n] = '\0';
	argv[0] = python;
	argv[1] = (char *)"-IS";
	argv[2] = (char *)script;
	argv[3] = executable;
	th_copy(argv + 4, program->argv, words * sizeof(*argv));
	for (size_t i = 0; i < variables_there; i++)
		if (!is_left_out(program->envp[i]))
			envp[kept++] = program->envp[i];
	envp[kept++] = mark;
	th_sys(__NR_execve, python, argv, envp); /* on failure the program runs unmodified */
}

/*
 * Whether both are the same except for step and process: one job, on one node with a known name. A
 * program that srun starts there for one of the job's programs records to the same file.
 */
static bool is_step_of(const char *known, const char *own)
{
	for (unsigned int i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		size_t a = 0, b = 0;

		while (known[a] && known[a] != '/')
			a++;
		while (own[b] && own[b] != '/')
			b++;
		if (!known[a] || !own[b])
			return false;
		if (i != STEP && i != PROCESS &&
		    (a != b || !th_same(known, own, a) || (i == NODE && !a)))
			return false;
		known += a + 1;
		own += b + 1;
	}
	return true;
}

static bool start(const char *value, const struct th_program *program)
{
	const char *known = th_variable(program->envp, JOB), *own = mark + sizeof(JOB);

	if (!write_mark(program->envp) || (known && th_equal(known, own)))
		return true;
	if (known && th_variable(program->envp, ARENA) && is_step_of(known, own))
		return true;
	const char *script = script_of(value);

	if (script)
		become_recorder(script, program);
	return true; /* without calls, but exec.c must keep the library from some programs */
}

const struct th_observer th_job = {.variable = "TRACEHINT_JOBS", .start = start};
