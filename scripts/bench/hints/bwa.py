"""BWA: real reads are aligned on all nodes, sorted and joined; the index lies in the store."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from scripts.bench.hints.row import MB, NODES, Row, rules

BASES = 100 * MB
READS, LENGTH = 2_000, 100  # of a node
INDEX = tuple(f"ref.fa.{kind}" for kind in ("amb", "ann", "bwt", "pac", "sa"))


def make(folder: Path, bases: int, reads: int = READS) -> str:
    """Index and `reads` reads a node; a chain of alignment and sorting a node, then one file."""
    import numpy as np

    rng = np.random.default_rng(1)
    genome = np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, bases, np.uint8)].tobytes()
    (folder / "ref.fa").write_bytes(b">chr1\n" + genome + b"\n")
    subprocess.run(["bwa", "index", "ref.fa"], cwd=folder, check=True, capture_output=True)
    (folder / "ref.fa").unlink()
    for k in range(NODES):
        starts = rng.integers(0, bases - LENGTH, reads).tolist()
        text = [
            b"@r%d_%d\n%s\n+\n%s\n" % (k, i, genome[at : at + LENGTH], b"I" * LENGTH)
            for i, at in enumerate(starts)
        ]
        (folder / f"part_{k}.fq").write_bytes(b"".join(text))
    index, bams = " ".join(INDEX), [f"part_{k}.bam" for k in range(NODES)]
    chains = [
        part
        for k, bam in enumerate(bams)
        for part in (
            (
                f"part_{k}.sam",
                f"part_{k}.fq {index}",
                f"bwa mem -o part_{k}.sam ref.fa part_{k}.fq",
            ),
            (bam, f"part_{k}.sam", f"samtools sort --no-PG -o {bam} part_{k}.sam"),
        )
    ]
    merge = f"samtools merge --no-PG -c -p -s 1 -f merged.bam {' '.join(bams)}"
    return rules(*chains, ("merged.bam", " ".join(bams), merge))


def by_hand() -> Mapping[str, Mapping[str, str]]:
    """The index on every node, alignments where they are sorted, sorted ones at the merge."""
    hints: dict[str, Mapping[str, str]] = {name: {"Replication": str(NODES)} for name in INDEX}
    for k in range(NODES):
        hints[f"part_{k}.sam"] = {"DP": "local"}
        hints[f"part_{k}.bam"] = {"DP": "collocation|merge"}
    return hints


ROWS = [
    Row(
        name="bwa",
        title="BWA, 5 parts on an index of 175 MB",
        size=BASES,
        make=make,
        by_hand=by_hand,
        programs=("bwa", "samtools"),
        small=100_000,
    )
]
