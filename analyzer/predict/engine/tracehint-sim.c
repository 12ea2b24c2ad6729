// SPDX-License-Identifier: Apache-2.0
/* tracehint-sim WORKLOAD SCENARIOS: simulate a workflow on clusters (docs/explanation/predict.md).
 *
 * The files are written by `tracehint predict`; the answers are written to standard output, one
 * after the other. Equal files result in equal output. Exit status: 0; 2: invalid file; 3: out of
 * memory, or the answer cannot be written.
 */
#include "sim.h"

#include <stdio.h>

static int all_scenarios(const struct workload *w, struct file *f)
{
	struct scenario s;
	int found;

	while ((found = scenario_read(&s, w, f)) == 1) {
		struct sim m;

		sim_init(&m, w, &s);
		sim_run(&m);
		int failed = answer(&m);
		sim_free(&m);
		if (failed) {
			complain("cannot be written", "the answer");
			return 3;
		}
	}
	return found ? 2 : 0;
}

int main(int argc, char **argv)
{
	struct file work = {0}, runs = {0};
	struct workload w;
	int code = 2;

	if (argc != 3) {
		complain("usage: tracehint-sim WORKLOAD SCENARIOS", "arguments");
		return 2;
	}
	if (!file_open(&work, argv[1]) && !file_open(&runs, argv[2]) && !workload_read(&w, &work))
		code = all_scenarios(&w, &runs);
	if (fflush(stdout) && !code) {
		complain("cannot be written", "the answer");
		code = 3;
	}
	file_close(&work);
	file_close(&runs);
	return code;
}
