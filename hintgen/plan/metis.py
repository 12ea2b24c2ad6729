"""METIS: cut a graph into parts of equal weight in every constraint, by its program gpmetis.

A program of its own, so that whatever a graph does to the library does not end ours. It comes
with the package cmeel-metis, or with Debian's `metis`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import numpy as np

from tracehint.analyzer.arrays import Ints, order_by, starts_of
from tracehint.analyzer.predict.model import Floats
from tracehint.hintgen.plan.errors import UnavailableError

PROGRAM = "gpmetis"
MAX_SECONDS = 120
_HEAVIEST = (1 << 30) - 1  # the sum of all weights of edges must fit into 31 bits


def find_metis() -> tuple[Path, dict[str, str]]:
    """The program and its environment. Raises UnavailableError."""
    try:
        files = metadata.files("cmeel-metis") or []
    except metadata.PackageNotFoundError:
        files = []
    for entry in files:
        if entry.name == PROGRAM and entry.parent.name == "bin" and "cmeel.prefix" in str(entry):
            program = Path(str(entry.locate())).resolve()
            if program.is_file():
                libraries = str(program.parent.parent / "lib")
                return program, {**os.environ, "LD_LIBRARY_PATH": libraries}
    found = shutil.which(PROGRAM)
    if found:
        return Path(found), dict(os.environ)
    raise UnavailableError(
        f"{PROGRAM} of METIS is missing: pip install cmeel-metis, or Debian's package metis"
    )


def cut(
    ends: tuple[Ints, Ints],
    bytes_: Ints,
    weights: Ints,
    shares: Floats,
    imbalance: Sequence[float],
    seed: int,
) -> Ints:
    """The part of each vertex.

    `ends`: two arrays of vertices, an edge each; `bytes_`: what an edge costs when it is cut.
    `weights`: (vertices, constraints), whole numbers from 0. `shares`: of each part, they sum to
    1. `imbalance`: by constraint, what the fullest part may hold against its share.
    Raises UnavailableError where METIS is missing or gives up.
    """
    program, environment = find_metis()
    parts = len(shares)
    with tempfile.TemporaryDirectory(prefix="tracehint-plan-") as folder:
        graph = Path(folder) / "graph"
        graph.write_bytes(_graph_text(ends, bytes_, weights))
        options = [f"-seed={seed}", f"-ubvec={' '.join(f'{u:.3f}' for u in imbalance)}"]
        if np.ptp(shares) > 1e-9:
            (Path(folder) / "shares").write_text(_shares_text(shares, weights.shape[1]))
            options.append(f"-tpwgts={Path(folder) / 'shares'}")
        words = [str(program), *options, str(graph), str(parts)]
        part = _run(words, environment, Path(folder) / f"graph.part.{parts}")
    if len(part) != len(weights) or part.min() < 0 or part.max() >= parts:
        raise UnavailableError("METIS answered something else than a part per task")
    return part


def _run(words: list[str], environment: dict[str, str], result: Path) -> Ints:
    """The numbers that METIS writes into `result`. Raises UnavailableError."""
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            check=False,
            env=environment,
            timeout=MAX_SECONDS,
            cwd=result.parent,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"METIS took more than {MAX_SECONDS} s") from None
    if done.returncode or not result.is_file():
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-200:]
        raise UnavailableError(f"METIS gave up: {said or done.returncode}")
    return np.array(result.read_bytes().split(), np.int64)


def _graph_text(ends: tuple[Ints, Ints], bytes_: Ints, weights: Ints) -> bytes:
    """The graph as METIS reads it: by vertex its weights, then its neighbours and their bytes."""
    count, constraints = weights.shape
    a, b = np.concatenate(ends), np.concatenate(ends[::-1])
    cost = np.concatenate([bytes_, bytes_])
    keep = a != b
    a, b, cost = a[keep], b[keep], cost[keep]
    order = order_by(a, b)
    a, b, cost = a[order], b[order], cost[order]
    first = starts_of(a, b)
    if len(first):
        cost = np.add.reduceat(cost.astype(np.float64), first)
        a, b = a[first], b[first]
        cost = np.maximum(1, np.rint(cost * min(1.0, _HEAVIEST / max(1.0, float(cost.sum())))))
    pairs = np.column_stack([b + 1, cost.astype(np.int64)]) if len(a) else np.zeros((0, 2), int)
    begin = np.searchsorted(a, np.arange(count + 1))
    words = pairs.ravel().astype("S").astype(object)
    own = weights.astype("S").astype(object)
    lines = [f"{count} {len(a) // 2} 011 {constraints}".encode()]
    lines += [b" ".join([*own[i], *words[2 * begin[i] : 2 * begin[i + 1]]]) for i in range(count)]
    return b"\n".join(lines) + b"\n"


def _shares_text(shares: Floats, constraints: int) -> str:
    return "".join(
        f"{part} : {c} = {share:.6f}\n"
        for part, share in enumerate(shares)
        for c in range(constraints)
    )
