/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables that name a task or its request; recorders keep only these. */
#ifndef TRACEHINT_MARKERS_H
#define TRACEHINT_MARKERS_H

/* clang-format off */
static const char *const task_markers[] = {
	"TRACEHINT_TASK=", "SLURM_JOB_ID=", "SLURM_ARRAY_JOB_ID=", "SLURM_ARRAY_TASK_ID=",
	"SLURM_STEP_ID=", "SLURM_PROCID=", "PBS_JOBID=", "PBS_ARRAY_INDEX=", "LSB_JOBID=",
	"LSB_JOBINDEX=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "PMIX_RANK=", "PARALLEL_SEQ=",
	"MAKELEVEL=", "SLURM_CPUS_ON_NODE=", "SLURM_MEM_PER_NODE=", "SLURM_MEM_PER_CPU=",
};
/* clang-format on */

#define TASK_MARKERS (sizeof(task_markers) / sizeof(*task_markers))

#endif
