"""dd, then MPI-IO, write disjoint regions of one file each; one program reads each file."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from tests.e2e.real.model import Job, Workflow
from tests.e2e.real.workflows.inputs import DATASETS

PARTS = range(4)
BLOCKS, BLOCK = 8, 65536  # per region
# Each rank names its task; otherwise `mpirun` with its ranks is one task.
SCRIPT = f"""\
for k in 0 1 2 3; do
    at=$((k * {BLOCKS}))
    dd if=field.bin of=copied.bin bs={BLOCK} count={BLOCKS} skip=$at seek=$at \\
        conv=notrunc status=none &
done
wait
mpirun --allow-run-as-root --oversubscribe -n 4 sh -c \\
    'exec env TRACEHINT_TASK=slab_$OMPI_COMM_WORLD_RANK \\
        /usr/bin/python3 slab.py slabs.bin {BLOCKS * BLOCK}'
cksum copied.bin > copied.txt
cksum slabs.bin > slabs.txt
"""


def jobs() -> list[Job]:
    return [
        *(Job(f"dd_{k}", f"skip={k * BLOCKS} ", ("field.bin",), ("copied.bin",)) for k in PARTS),
        *(
            Job(f"slab_{k}", f"TRACEHINT_TASK=slab_{k} ", ("slab.py",), ("slabs.bin",))
            for k in PARTS
        ),
        Job("sum of copies", "cksum copied.bin", ("copied.bin",), ("copied.txt",)),
        Job("sum of slabs", "cksum slabs.bin", ("slabs.bin",), ("slabs.txt",)),
    ]


def prepare(folder: Path) -> None:
    (folder / "field.bin").write_bytes(random.Random(3).randbytes(len(PARTS) * BLOCKS * BLOCK))
    (folder / "run.sh").write_text(SCRIPT)
    shutil.copy(DATASETS / "real" / "slab.py", folder)


WORKFLOW = Workflow(
    name="regions",
    title="Disjoint regions (dd, MPI-IO)",
    needs=("dd", "mpirun", "cksum"),
    prepare=prepare,
    command=("sh", "run.sh"),
    jobs=jobs,
    shows=(("field.bin", "scatter"), ("copied.bin", "gather"), ("slabs.bin", "gather")),
)
