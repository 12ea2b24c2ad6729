"""Snakemake: `bash -c "set -euo pipefail; ..."` per job; other children (uname, cbc) are helpers.

`run:` rules and cluster jobs start Snakemake again with `--target-jobs`: that process is the job.
"""

from __future__ import annotations

from tracehint.analyzer.tasks.model import WORKFLOW, Command, Engine


def _matches(command: Command) -> bool:
    return command.program == "snakemake" and command.job_of != "snakemake"


def _is_job(command: Command) -> bool:
    return command.kind == "inline" or command.job_of == "snakemake"


ENGINE = Engine(name="snakemake", rank=WORKFLOW, matches=_matches, is_job=_is_job)
