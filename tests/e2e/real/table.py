"""`python -m tests.e2e.real.table`: run all real workflows and write the docs page."""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.e2e.real.compare import Result, missing, trace
from tests.e2e.real.score import Score, score
from tests.e2e.real.workflows import WORKFLOWS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "real-runs.md"
HEAD = """\
# Real runs

Real workflows on small inputs, recorded by the eBPF collector of this project. The same run is
traced by strace, around all of it, so that both see the same calls of the same processes. A reader
of the log in the tests, which shares no code with the collectors, replays descriptors, offsets,
sizes and names; which processes are a job is known from the workflow's own definition. From these
accesses the byte-by-byte references of the tests derive edges and labels. This page is written by
`make real-runs-table`; `tests/e2e/test_real.py` fails below the goals.

"""
COLUMNS = (
    "workflow",
    "jobs",
    "accesses",
    "precision",
    "recall",
    "bytes",
    "wrong bytes",
    "edges",
    "false",
    "missed",
    "labels",
    "agree",
    "primary",
)
FOOT = """
- **Goals**: precision and recall of accesses at least 0.99, at most 2 % of the bytes wrong, at
  least 0.97 of the labels, no false edge.
- **Accesses**: one job reading or writing one file, its own bytes included. **Bytes**: distinct
  bytes, summed over accesses; wrong are those that one side has and the other has not.
- **Edges**: writer, file, reader; also none through an engine. **Labels**: of all labels that
  either side gives, the share that both give; **primary**: files whose primary label is the same.
- For mapped files strace knows the mapped range only. Where a mapping was not touched as a whole,
  the eBPF collector says less.
- `mpirun` with its ranks is one task unless the ranks say which one they are; here they do, by
  `TRACEHINT_TASK`.
"""


def row(result: Result, found: Score) -> list[str]:
    same = found.primaries - found.wrong_primaries
    return [
        result.workflow.title,
        str(found.jobs),
        str(found.accesses),
        f"{found.precision:.3f}",
        f"{found.recall:.3f}",
        f"{found.true_bytes:,}",
        f"{found.byte_error:.2%}",
        str(found.edges),
        str(found.false_edges),
        str(found.missed_edges),
        str(found.labels),
        f"{found.label_agreement:.3f}",
        f"{same}/{found.primaries}",
    ]


def versions() -> str:
    """Return the kernel's version and the programs' Debian package versions."""
    kernel = ".".join(platform.release().split(".")[:2])
    programs = (
        "ncbi-blast+ bwa samtools snakemake parallel openmpi-bin montage coop-computing-tools"
    )
    found = []
    for name in (*programs.split(), "gcc", "strace"):
        show = ["dpkg-query", "-W", "-f", "${Version}", name]
        done = subprocess.run(show, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout:
            found.append(f"{name} {done.stdout}")
    return f"\nLinux {kernel}; Debian packages {', '.join(found)}.\n"


def main() -> int:
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * (len(COLUMNS) - 1)]
    for workflow in WORKFLOWS:
        if absent := missing(workflow):
            print(f"{workflow.name}: not installed: {', '.join(absent)}", file=sys.stderr)
            return 1
        with tempfile.TemporaryDirectory() as folder:
            result = trace(workflow, Path(folder))
        lines.append("| " + " | ".join(row(result, score(result))) + " |")
        print(lines[-1])
    PAGE.write_text(HEAD + "\n".join(lines) + "\n" + FOOT + versions(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
