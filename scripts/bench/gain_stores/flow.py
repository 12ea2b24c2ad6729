"""A workload as a Makeflow workflow with its inputs, for engines that move what rules declare."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from scripts.bench.gain.columns import Case

from tracehint.analyzer.predict.model import COMPUTE, READ, WRITE

UNREAD = "unread.dat"
BLOCK = 1 << 22  # bytes written at once
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Flow:
    """A folder with `w.makeflow` and the inputs; sizes of what goes in, and of what comes out and
    no task reads."""

    folder: Path
    inputs: dict[str, int]
    results: dict[str, int]
    widely: tuple[str, ...]  # inputs that at least as many tasks read as there are nodes


def flow_of(case: Case, folder: Path, unread: int, nodes: int) -> Flow:
    """Write the workflow and its inputs, once. Raises ValueError for a name that is not plain."""
    names = _names(case)
    work = case.work
    read = work.op_file[work.of_kind(READ)].tolist()
    inputs = {n: int(s) for n, s, p in zip(names, work.size, work.produced, strict=True) if not p}
    results = {
        names[f]: int(work.size[f])
        for f in range(work.files)
        if work.produced[f] and f not in set(read)
    }
    if unread:
        inputs[UNREAD] = unread
    widely = tuple(
        names[f] for f in sorted(set(read)) if not work.produced[f] and read.count(f) >= nodes
    )
    if not folder.exists():
        folder.mkdir(parents=True)
        for name, size in inputs.items():
            fill(folder / name, size)
        more = [UNREAD] if unread else []
        rules = [_rule(case, task, names, more) for task in range(work.tasks)]
        (folder / "w.makeflow").write_text("".join(rules))
    return Flow(folder, inputs, results, widely)


def fill(path: Path, size: int) -> None:
    """A file of random bytes: stores that name content by its checksum keep equal files once."""
    with path.open("wb") as file:
        for at in range(0, size, BLOCK):
            file.write(os.urandom(min(BLOCK, size - at)))


def _names(case: Case) -> list[str]:
    files = case.analysis.files
    by_id = dict(zip(files["file"].to_pylist(), files["path"].to_pylist(), strict=True))
    names = [by_id[key].rpartition(b"/")[2].decode() for key in case.work.file_id.tolist()]
    if len(set(names)) < len(names) or not all(map(_PLAIN.fullmatch, names)):
        raise ValueError("names of files that are not plain, or not different")
    return names


def _rule(case: Case, task: int, names: list[str], more: list[str]) -> str:
    """Read everything, compute, write; a line that Makeflow gives to a shell."""
    work = case.work
    ops = range(work.op_begin[task], work.op_begin[task + 1])
    of = {
        kind: list(dict.fromkeys(names[work.op_file[i]] for i in ops if work.op_kind[i] == kind))
        for kind in (READ, WRITE)
    }
    seconds = sum(float(work.op_seconds[i]) for i in ops if work.op_kind[i] == COMPUTE)
    sizes = dict(zip(names, work.size.tolist(), strict=True))
    kind = work.type_names[work.type[task]]
    made = "; ".join(f"head -c {sizes[name]} /dev/urandom > {name}" for name in of[WRITE])
    head = f"{' '.join(of[WRITE])}: {' '.join(of[READ] + more)}"
    seen = f"cat {' '.join(of[READ])} > /dev/null; " if of[READ] else ""
    return f"# {kind}\n{head}\n\t{seen}sleep {seconds:.2f}; {made}\n"
