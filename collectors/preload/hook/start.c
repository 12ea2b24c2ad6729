// SPDX-License-Identifier: Apache-2.0
/* The loader calls this before the program begins. */
#include "core.h"

__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
	struct th_program program = {argc, argv, envp};

	th_state = th_map_wiped(sizeof(*th_state));
	if (!th_state) {
		th_dispatch_missed(&program);
		return;
	}
	th_exec_start(&program);
	if (th_dispatch_start(&program))
		th_patch_all(&program);
}
