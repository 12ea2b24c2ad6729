"""What took the files that each emitter writes: an engine that ran them, an API, a grammar.

A row for each name of `EMITTERS`; the test that shows it stands in the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

By = Literal["runs", "api", "grammar"]
WORDS = {"runs": "run by", "api": "the same as", "grammar": "not run; checked by"}


@dataclass(frozen=True)
class Accepted:
    """`by`: how; `what`: version, or whose grammar; `test`: FILE::FUNCTION below tests/."""

    by: By
    what: str
    test: str


_SWIFT = "our reading of its grammar: no Swift installs here"
ACCEPTED: dict[str, Accepted] = {
    "makeflow": Accepted("runs", "Makeflow 9.9",
        "test_plan_emit_run.py::test_makeflow_runs_each_rule_on_the_node_of_its_part"),
    "swift": Accepted("grammar", _SWIFT, "test_emit_swift.py::test_every_pattern_has_its_policy"),
    "swift-k": Accepted("grammar", _SWIFT, "test_emit_swift.py::test_every_pattern_has_its_policy"),
    "swift-t": Accepted("grammar", _SWIFT, "test_emit_swift.py::test_locations_for_swift_t"),
    "snakemake": Accepted("runs", "Snakemake 8.0 to 9.27",
        "test_plan_emit_run.py::test_other_snakemakes_group_as_well"),
    "nextflow": Accepted("runs", "Nextflow 24.10",
        "test_plan_emit_run.py::test_nextflow_tells_each_task_its_part"),
    "confuga": Accepted("runs", "Makeflow and Confuga of cctools 9.9; JSON jobs by its head",
        "test_confuga.py::test_the_planned_run_moves_the_shared_file_once"),
    "work-queue": Accepted("runs", "Makeflow and workers of cctools 9.9",
        "test_work_queue.py::test_the_planned_start_sends_no_intermediate_again"),
    "cwl": Accepted("runs", "cwltool 3.3, which ignores the hints as the standard asks",
        "test_emit_cwl.py::test_cwltool_runs_the_hinted_workflow_on_the_hinted_inputs"),
    "pegasus": Accepted("api", "what Pegasus' Python API 5.1 writes: no planner installs here",
        "test_emit_pegasus.py::test_the_api_writes_the_same_for_these_words"),
    "parsl": Accepted("runs", "Parsl 2026.10",
        "test_plan_emit_run.py::test_parsl_runs_each_call_on_the_executor_of_its_part"),
    "dask": Accepted("runs", "Dask 2026.8, workers of its own",
        "test_emit_modules.py::test_dask_starts_each_task_on_the_worker_of_its_part"),
    "taskvine": Accepted("grammar",
        "the signatures of ndcctools.taskvine, which no registry of packages has here",
        "test_emit_modules.py::test_taskvine_declares_files_as_their_hints_say"),
    "slurm": Accepted("runs", "Slurm 22.05",
        "test_plan_emit_run.py::test_slurm_runs_the_submitted_jobs_in_order_on_their_nodes"),
    "json": Accepted("grammar", "reading it back",
        "test_plan_emit.py::test_json_for_any_scheduler"),
}  # fmt: skip  # a table


def accepted() -> str:
    """The table in Markdown."""
    lines = ["| `--workflow-engine` | the emitted files are | test |", "| --- | --- | --- |"]
    lines += [
        f"| `{name}` | {WORDS[row.by]} {row.what} | `tests/{row.test.partition('::')[0]}` |"
        for name, row in ACCEPTED.items()
    ]
    return "\n".join(lines)
