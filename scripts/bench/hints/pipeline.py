"""Pipeline: five chains of three programs; alone, and with input from and output to an archive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from scripts.bench.hints.archive import FETCH, PUT
from scripts.bench.hints.row import MB, NODES, Row, fill, rules

SIZE = 20 * MB


def chain(i: int, first: str) -> list[tuple[str, str, str]]:
    """From `first` to a checksum: three programs that read all that the one before wrote."""
    return [
        (f"b_{i}.dat", first, f"tr a-y b-z < {first} > b_{i}.dat"),
        (f"c_{i}.dat", f"b_{i}.dat", f"dd if=b_{i}.dat of=c_{i}.dat bs=1M conv=swab status=none"),
        (f"sum_{i}.txt", f"c_{i}.dat", f"sha256sum < c_{i}.dat > sum_{i}.txt"),
    ]


def plain(_folder: Path, size: int) -> str:
    """The first program makes its data."""
    parts = [(f"a_{i}.dat", "", fill(f"a_{i}.dat", size)) for i in range(NODES)]
    return rules(*parts, *(part for i in range(NODES) for part in chain(i, f"a_{i}.dat")))


def staged(folder: Path, _size: int) -> str:
    """Data come from the archive, and the result goes back there."""
    (folder / "fetch").write_text(FETCH)
    (folder / "put").write_text(PUT)
    parts = [(f"in_{i}.dat", "fetch", f"bash ./fetch in_{i}.dat") for i in range(NODES)]
    parts += [part for i in range(NODES) for part in chain(i, f"in_{i}.dat")]
    parts += [
        (f"kept_{i}", f"put sum_{i}.txt", f"bash ./put sum_{i}.txt > kept_{i}")
        for i in range(NODES)
    ]
    return rules(*parts)


def _local(*kinds: str) -> Mapping[str, Mapping[str, str]]:
    return {f"{kind}_{i}.dat": {"DP": "local"} for kind in kinds for i in range(NODES)}


ROWS = [
    Row(
        name="pipeline",
        title="pipeline",
        size=SIZE,
        make=plain,
        pairs=10,
        by_hand=lambda: _local("a", "b", "c"),
    ),
    Row(
        name="pipeline-staged",
        title="pipeline with staging",
        size=SIZE,
        make=staged,
        by_hand=lambda: _local("in", "b", "c"),
        staged={f"in_{i}.dat": SIZE for i in range(NODES)},
    ),
]
