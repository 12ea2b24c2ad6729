"""BLAST: real searches of one large database, which lies in the store before the run."""

from __future__ import annotations

import subprocess
from pathlib import Path

from scripts.bench.hints.row import MB, NODES, Row, rules

RESIDUES = 500 * MB  # a byte each in the database
LENGTH = 5_000  # of a made-up protein
QUERY = 120
_LETTERS = b"ACDEFGHIKLMNPQRSTVWY"
FILES = tuple(f"db.{kind}" for kind in ("pdb", "phr", "pin", "pot", "psq", "ptf", "pto"))


def make(folder: Path, residues: int) -> str:
    """Database and queries; one search a node, then all hits in one file."""
    import numpy as np

    rng, count = np.random.default_rng(1), residues // LENGTH
    letters = np.frombuffer(_LETTERS, np.uint8)
    with (folder / "db.fa").open("wb") as out:
        for k in range(count):
            protein = letters[rng.integers(0, len(letters), LENGTH, np.uint8)].tobytes()
            out.write(b">s%d\n%s\n" % (k, protein))
            if k < NODES:
                (folder / f"q_{k}.fa").write_bytes(b">q%d\n%s\n" % (k, protein[:QUERY]))
    words = ["makeblastdb", "-in", "db.fa", "-dbtype", "prot", "-out", "db"]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (folder / "db.fa").unlink()
    hits = [f"hits_{k}.tsv" for k in range(NODES)]
    search = "blastp -task blastp-fast -db db -outfmt 6 -evalue 1e-5"
    return rules(
        *(
            (hit, f"q_{k}.fa {' '.join(FILES)}", f"{search} -query q_{k}.fa -out {hit}")
            for k, hit in enumerate(hits)
        ),
        ("hits.tsv", " ".join(hits), f"sort {' '.join(hits)} > hits.tsv"),
    )


ROWS = [
    Row(
        name="blast",
        title="BLAST, 5 searches of 500 MB",
        size=RESIDUES,
        make=make,
        by_hand=lambda: {name: {"Replication": str(NODES)} for name in FILES},
        programs=("blastp", "makeblastdb"),
        small=100_000,
    )
]
