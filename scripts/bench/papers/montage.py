"""The published Montage on 100 nodes, stage by stage: the effect of hints.

Computing times are not published: each stage's is fitted to the hinted column, and the default
column is predicted from it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache

from scripts.bench.papers.patterns import LINK, STRIPES
from tests.support.predicting import MB, Task, plain, workload

from tracehint.analyzer.predict.model import Strategy, Workload, default, local
from tracehint.analyzer.predict.prediction import Configuration, Prediction, predict

NODES = 100
IMAGES, OVERLAPS = 955, 2833
IMAGE = 4_190_000  # bytes of a projected image, or of its area


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


@dataclass
class _Made:
    """Tasks so far; `seconds` of a task by stage."""

    seconds: dict[str, float]
    tasks: list[Task] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)

    def add(self, stage: str, reads: list[str], writes: dict[str, int]) -> None:
        steps: list[tuple[str, object]] = [("read", name) for name in reads]
        steps += [("compute", self.seconds.get(stage, 0.0)), *(("write", name) for name in writes)]
        self.tasks.append(Task(f"{stage}_{len(self.tasks)}", steps, stage))
        self.sizes.update(writes)

    def look(self, stage: str, names: list[str], size: int, writes: dict[str, int]) -> None:
        """Add a task that reads `size` bytes of each file."""
        steps: list[tuple[str, object]] = [("read", (name, 0, size)) for name in names]
        self.tasks.append(Task(stage, [*steps, *(("write", name) for name in writes)], stage))
        self.sizes.update(writes)


def _pair(kind: str, number: int) -> list[str]:
    return [f"{kind}_{number}.fits", f"{kind}_{number}_area.fits"]


def montage(seconds: dict[str, float]) -> Workload:
    """Return the tasks, with published counts and sizes of files; `seconds` of a task by stage."""
    made = _Made(seconds)
    for i in range(IMAGES):
        made.sizes[f"raw_{i}.fits"] = 2 * MB
        made.add("mProject", [f"raw_{i}.fits"], dict.fromkeys(_pair("p", i), IMAGE))
    made.look("mImgTbl", [f"p_{i}.fits" for i in range(IMAGES)], 2_880, {"images.tbl": 17_000})
    made.add("mOverlaps", ["images.tbl"], {"diffs.tbl": 336_000})
    for i in range(OVERLAPS):
        one, other = i % IMAGES, (i + 1 + i // IMAGES) % IMAGES
        reads = ["diffs.tbl", *_pair("p", one), *_pair("p", other)]
        made.add("mDiff", reads, dict.fromkeys(_pair("d", i), 460_000))
    # they ran stage by stage
    made.look("barrier", [f"d_{i}.fits" for i in range(OVERLAPS)], 0, {"go": 0})
    for i in range(OVERLAPS):
        made.add("mFitPlane", ["go", f"d_{i}.fits"], {f"fit_{i}.txt": 1_800})
    made.add("mConcatFit", [f"fit_{i}.txt" for i in range(OVERLAPS)], {"fits.tbl": 150_000})
    made.add("mBgModel", ["images.tbl", "fits.tbl"], {"corrections.tbl": 20_000})
    for i in range(IMAGES):
        reads = ["corrections.tbl", *_pair("p", i)]
        made.add("mBackground", reads, dict.fromkeys(_pair("c", i), IMAGE))
    flat = [name for i in range(IMAGES) for name in _pair("c", i)]
    mosaic = {"mosaic.fits": 2_870 * MB, "area.fits": 2_870 * MB, "header": 165 * MB}
    made.add("mAdd", flat, mosaic)
    made.add("mJpeg", ["mosaic.fits"], {"mosaic.jpg": 47 * MB})
    return workload(made.tasks, made.sizes)


def fitted() -> Workload:
    """Return the workload with computing times that reproduce the published hinted column."""
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
    """Predict the run on 100 nodes with links of 1 Gbit/s."""
    machines = plain(NODES, 1, node=LINK, store=STRIPES, rest="[scheduler]\nsteal = true")
    return predict(work, [Configuration("", machines, "", strategy)], runs=3)[0]


def durations(found: Prediction, work: Workload) -> dict[str, float]:
    """Return the seconds of each stage, from its first start to its last end."""
    rows = found.outcome.types
    return {name: float(rows[n, 1] - rows[n, 0]) for n, name in enumerate(work.type_names)}


@cache
def stage_seconds() -> list[dict[str, float]]:
    """Return seconds by stage of the fitted workload, under the default and with hints."""
    work = fitted()
    return [durations(predicted(work, way), work) for way in (default, local)]
