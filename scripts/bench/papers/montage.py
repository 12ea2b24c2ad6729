"""The published Montage on 100 nodes, stage by stage: what hints change in it.

Computing is not published: each stage's is taken so that the hinted column comes out, and the
default column is predicted from it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from scripts.bench.papers.patterns import LINK, STRIPES
from tests.support.predicting import MB, Task, plain, workload

from tracehint.analyzer.predict.model import Workload
from tracehint.analyzer.predict.placement import Strategy, local
from tracehint.analyzer.predict.prediction import Configuration, Prediction, predict

NODES = 100
IMAGES, OVERLAPS = 955, 2833


@dataclass(frozen=True)
class Stage:
    """Published seconds (their Table 7) of the default store and with hints."""

    name: str
    default: float
    hinted: float


STAGES = (
    Stage("mProject", 16.91, 16.74), Stage("mOverlaps", 52.71, 54.83), Stage("mDiff", 24.32, 28.52),
    Stage("mFitPlane", 42.38, 43.87), Stage("mConcatFit", 41.51, 43.68),
    Stage("mBgModel", 31.30, 31.33), Stage("mBackground", 15.59, 18.78),
    Stage("mAdd", 446.96, 350.32), Stage("mJpeg", 264.76, 119.89),
)  # fmt: skip  # a table


def montage(seconds: dict[str, float]) -> Workload:
    """7,582 tasks whose files have the published counts and sizes; `seconds` of a task by stage."""
    tasks: list[Task] = []
    sizes: dict[str, int] = {}

    def add(stage: str, number: int, reads: list[str], writes: dict[str, int]) -> None:
        steps = [("read", name) for name in reads]
        steps += [("compute", seconds.get(stage, 0.0)), *(("write", name) for name in writes)]
        tasks.append(Task(f"{stage}_{number}", steps, stage))
        sizes.update(writes)

    def pair(kind: str, number: int) -> list[str]:
        return [f"{kind}_{number}.fits", f"{kind}_{number}_area.fits"]

    for i in range(IMAGES):
        sizes[f"raw_{i}.fits"] = 2 * MB
        add("mProject", i, [f"raw_{i}.fits"], dict.fromkeys(pair("p", i), 4_190_000))
    images = [name for i in range(IMAGES) for name in pair("p", i)]
    heads: list[tuple[str, object]] = [("read", (name, 0, 2_880)) for name in images[::2]]
    tasks.append(Task("mImgTbl_0", [*heads, ("write", "images.tbl")], "mImgTbl"))
    sizes["images.tbl"] = 17_000
    add("mOverlaps", 0, ["images.tbl"], {"diffs.tbl": 336_000})
    for i in range(OVERLAPS):
        one, other = i % IMAGES, (i + 1 + i // IMAGES) % IMAGES
        reads = ["diffs.tbl", *pair("p", one), *pair("p", other)]
        add("mDiff", i, reads, dict.fromkeys(pair("d", i), 460_000))
    ends: list[tuple[str, object]] = [("read", (f"d_{i}.fits", 0, 0)) for i in range(OVERLAPS)]
    tasks.append(Task("barrier", [*ends, ("write", "go")], "barrier"))  # they ran stage by stage
    sizes["go"] = 0
    for i in range(OVERLAPS):
        add("mFitPlane", i, ["go", *pair("d", i)[:1]], {f"fit_{i}.txt": 1_800})
    add("mConcatFit", 0, [f"fit_{i}.txt" for i in range(OVERLAPS)], {"fits.tbl": 150_000})
    add("mBgModel", 0, ["images.tbl", "fits.tbl"], {"corrections.tbl": 20_000})
    for i in range(IMAGES):
        reads = ["corrections.tbl", *pair("p", i)]
        add("mBackground", i, reads, dict.fromkeys(pair("c", i), 4_190_000))
    flat = [name.replace("p_", "c_", 1) for name in images]
    mosaic = {"mosaic.fits": 2_870 * MB, "area.fits": 2_870 * MB, "header": 165 * MB}
    add("mAdd", 0, flat, mosaic)
    add("mJpeg", 0, ["mosaic.fits"], {"mosaic.jpg": 47 * MB})
    return workload(tasks, sizes)


def fitted() -> Workload:
    """With a computing of each stage's tasks that gives the published hinted column."""
    bare = montage({})
    idle = durations(predicted(bare, local), bare)
    waves = {name: -(-count // NODES) for name, count in _counts().items()}
    first = {s.name: max(0.0, (s.hinted - idle[s.name]) / waves[s.name]) for s in STAGES}
    got = durations(predicted(montage(first), local), bare)
    return montage({s.name: first[s.name] * s.hinted / got[s.name] for s in STAGES})


def _counts() -> Counter[str]:
    return Counter({s.name: 1 for s in STAGES}) | Counter(
        mProject=IMAGES, mDiff=OVERLAPS, mFitPlane=OVERLAPS, mBackground=IMAGES
    )


def predicted(work: Workload, strategy: Strategy) -> Prediction:
    """On 100 nodes of 1 Gbit."""
    machines = plain(NODES, 1, node=LINK, store=STRIPES, rest="[scheduler]\nsteal = true")
    return predict(work, [Configuration("", machines, "", strategy)], runs=3)[0]


def durations(found: Prediction, work: Workload) -> dict[str, float]:
    """Seconds of each stage, from its first start to its last end."""
    rows = found.outcome.types
    return {name: float(rows[n, 1] - rows[n, 0]) for n, name in enumerate(work.type_names)}
