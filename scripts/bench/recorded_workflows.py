"""The real workflows of `bench_record`, each made in a folder and run by Makeflow."""

from __future__ import annotations

import functools
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from scripts.bench.cluster_workflows import MB, make_blast, make_bwa

_MONTAGE = Path(__file__).parents[2] / "datasets" / "montage"


def _fresh(base: Path, workflow: str, product: str) -> tuple[str, ...]:
    """Return the command that runs a copy of the folder, and fails if there is no product."""
    run = base.with_name(base.name + "-run")
    words = tuple(shlex.quote(str(path)) for path in (base, run))
    fresh = "rm -rf {1} && cp -r {0} {1} && cd {1}".format(*words)
    return ("sh", "-c", f"{fresh} && makeflow {workflow} && test -s {product}")


def _montage(folder: Path) -> tuple[str, ...]:
    for script, target in (("make_tiles.py", folder / "archive"), ("make_workflow.py", folder)):
        size = ["--columns=4", "--rows=2"]
        subprocess.run([sys.executable, _MONTAGE / script, target, *size], check=True)
    return _fresh(folder, "montage.makeflow", "mosaic.png")


def _rules(
    make: Callable[[Path, int], None], size: int, product: str
) -> Callable[[Path], tuple[str, ...]]:
    def made(folder: Path) -> tuple[str, ...]:
        make(folder, size)
        return _fresh(folder, "workflow.makeflow", product)

    return made


_BWA_READS = {"10 thousand": 2_000, "200 thousand": 40_000}  # total -> per node
WORKFLOWS: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "Montage, 8 tiles": _montage,
    **{
        f"BWA of {many} reads, 5 alignments to 10 million bases": _rules(
            functools.partial(make_bwa, reads=reads), 10 * MB, "merged.bam"
        )
        for many, reads in _BWA_READS.items()
    },
    "BLAST, 5 searches of 50 MB": _rules(make_blast, 50 * MB, "hits.tsv"),
}
