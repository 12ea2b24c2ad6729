"""GNU parallel on byte ranges of one file: each job reads and sorts its own part."""

from __future__ import annotations

import random
from pathlib import Path

from tests.e2e.real.model import Job, Workflow

PARTS = range(1, 9)
SCRIPT = """\
parallel -j 2 --pipepart --block -4 -a records.txt 'sort > sorted_{#}.txt'
sort -m sorted_*.txt > sorted.txt
"""


def jobs() -> list[Job]:
    return [
        *(
            Job(f"sort {k}", f"(sort > sorted_{k}.txt", ("records.txt",), (f"sorted_{k}.txt",))
            for k in PARTS
        ),
        Job("merge", "sort -m", tuple(f"sorted_{k}.txt" for k in PARTS), ("sorted.txt",)),
    ]


def prepare(folder: Path) -> None:
    dice = random.Random(2)
    with (folder / "records.txt").open("w") as out:
        out.writelines(f"{dice.getrandbits(120):030x}\n" for _ in range(120_000))
    (folder / "run.sh").write_text(SCRIPT)


WORKFLOW = Workflow(
    name="ranges",
    title="Byte ranges of one file (GNU parallel)",
    needs=("parallel",),
    prepare=prepare,
    command=("sh", "run.sh"),
    jobs=jobs,
    shows=(("records.txt", "scatter"), ("sorted_1.txt", "reduce"), ("sorted.txt", "stage_out")),
)
