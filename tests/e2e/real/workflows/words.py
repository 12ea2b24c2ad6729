"""xargs in a shell script: split a text, change each part, count the words of all."""

from __future__ import annotations

import random
from pathlib import Path

from tests.e2e.real.model import Job, Workflow

PARTS = range(6)
SCRIPT = """\
split -n l/6 -d -a 1 --additional-suffix=.txt words.txt part_
ls part_*.txt | xargs -P 2 -I{} sh -c 'tr a-z A-Z < {} > {}.up'
sh -c 'cat part_*.up | sort -S 64M | uniq -c > counts.txt'
rm part_*.txt
"""


def jobs() -> list[Job]:
    changed = tuple(f"part_{k}.txt.up" for k in PARTS)
    return [
        Job("split", "split -n", ("words.txt",), tuple(f"part_{k}.txt" for k in PARTS)),
        *(
            Job(f"upper {k}", f"A-Z < part_{k}.txt", (f"part_{k}.txt",), (changed[k],))
            for k in PARTS
        ),
        Job("count", "sort -S 64M | uniq", changed, ("counts.txt",)),
        Job("list", "ls part_0.txt"),  # children of the script, as all others
        Job("clean", "rm part_0.txt"),
    ]


def prepare(folder: Path) -> None:
    dice = random.Random(4)
    known = ["".join(dice.choices("abcdefghij", k=dice.randint(3, 9))) for _ in range(500)]
    with (folder / "words.txt").open("w") as out:
        out.writelines(f"{dice.choice(known)}\n" for _ in range(200_000))
    (folder / "run.sh").write_text(SCRIPT)


WORKFLOW = Workflow(
    name="words",
    title="Words of a text (shell script, xargs)",
    needs=("xargs", "split"),
    prepare=prepare,
    command=("sh", "run.sh"),
    jobs=jobs,
    shows=(("part_0.txt", "distribute"), ("part_0.txt.up", "reduce"), ("counts.txt", "stage_out")),
)
