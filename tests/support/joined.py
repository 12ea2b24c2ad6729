"""Runs of any size: copies of small workflows as used in practice, side by side.

`declared(copies)` is a WfFormat document: per copy a mosaic (fan-out, pairs, reduce, broadcast), a
genome pipeline (split, chains, merge) and a search (one table for all). Each copy has its own
names, as instances that are joined in practice have.
"""

from __future__ import annotations

from typing import Any

TASKS_PER_COPY = 100


class _Copy:
    """Tasks and files of one copy."""

    def __init__(self, number: int) -> None:
        self.at = f"w{number:05d}/"
        self.tasks: list[dict[str, Any]] = []
        self.sizes: dict[str, int] = {}
        self.maker: dict[str, str] = {}

    def task(self, kind: str, number: int, reads: list[str], writes: dict[str, int]) -> None:
        """Add one task; the producers of its inputs are its parents."""
        name = f"{self.at}{kind}_{number:03d}"
        inputs = [self.at + file for file in reads]
        for file, size in writes.items():
            self.sizes[self.at + file] = size
            self.maker[self.at + file] = name
        for file in inputs:
            self.sizes.setdefault(file, 3 << 20)
        parents = sorted({self.maker[file] for file in inputs if file in self.maker})
        self.tasks.append(
            {
                "name": kind, "id": name, "parents": parents, "children": [],
                "inputFiles": inputs, "outputFiles": [self.at + file for file in writes],
            }
        )  # fmt: skip  # a table


def _mosaic(copy: _Copy, images: int = 10) -> None:
    for i in range(images):
        area = {f"p/p_{i}.fits": (4 << 20) + i, f"p/p_area_{i}.fits": 4 << 20}
        copy.task("project", i, [f"raw/i_{i}.fits", "region.hdr"], area)
    for i in range(images - 1):
        pair = [f"p/p_{i}.fits", f"p/p_{i + 1}.fits", "region.hdr"]
        copy.task("diff", i, pair, {f"d/d_{i}.fits": 1 << 20})
        copy.task("fit", i, [f"d/d_{i}.fits"], {f"fit/fit_{i}.txt": 300})
    fits = [f"fit/fit_{i}.txt" for i in range(images - 1)]
    copy.task("concat", 0, fits, {"fits.tbl": 9000})
    copy.task("model", 0, ["fits.tbl"], {"corrections.tbl": 2000})
    for i in range(images):
        copy.task("background", i, [f"p/p_{i}.fits", "corrections.tbl"], {f"c/c_{i}.fits": 4 << 20})
    copy.task("add", 0, [f"c/c_{i}.fits" for i in range(images)], {"mosaic.fits": 30 << 20})


def _genome(copy: _Copy, lanes: int = 10) -> None:
    copy.task("split", 0, ["reads.fq"], {f"s/{i}.fq": 8 << 20 for i in range(lanes)})
    for i in range(lanes):
        copy.task("filter", i, [f"s/{i}.fq"], {f"f/{i}.fq": 7 << 20})
        copy.task("map", i, [f"f/{i}.fq", "genome.idx"], {f"m/{i}.bam": 5 << 20})
    bams = [f"m/{i}.bam" for i in range(lanes)]
    copy.task("merge", 0, bams, {"all.bam": 50 << 20})
    copy.task("index", 0, ["all.bam"], {"all.bai": 90_000})


def _search(copy: _Copy) -> None:
    parts = TASKS_PER_COPY - len(copy.tasks) - 2
    copy.task("cut", 0, ["query.fa"], {f"q/q{i}.fa": 100_000 for i in range(parts)})
    for i in range(parts):
        copy.task("search", i, [f"q/q{i}.fa", "nt.db"], {f"r/r{i}.out": 40_000})
    copy.task("gather", 0, [f"r/r{i}.out" for i in range(parts)], {"result.txt": 400_000})


def declared(copies: int) -> dict[str, Any]:
    """Return the WfFormat 1.5 document of `copies * TASKS_PER_COPY` tasks."""
    tasks, files = [], []
    for number in range(copies):
        copy = _Copy(number)
        _mosaic(copy)
        _genome(copy)
        _search(copy)
        assert len(copy.tasks) == TASKS_PER_COPY
        tasks += copy.tasks
        files += [{"id": name, "sizeInBytes": size} for name, size in copy.sizes.items()]
    ran = [{"id": t["id"], "runtimeInSeconds": 1.0 + n % 7} for n, t in enumerate(tasks)]
    return {
        "name": "joined", "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": tasks, "files": files},
            "execution": {
                "makespanInSeconds": 10, "executedAt": "2000-01-01T00:00:00+00:00", "tasks": ran,
            },
        },
    }  # fmt: skip  # a table
