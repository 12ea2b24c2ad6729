"""Application of a placement to a store: one directory per place (stores.py), and each file is in
the directory of its place. So a hint costs no call; `make bench-adapters` measures calls.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scripts.bench.gain.stores import GainBed

from tracehint.analyzer.predict.model import COMPUTE, WRITE, Placement, Workload, law

PLAIN = "1"  # the place for one copy on any node
MAX_COPIES = 9
_BATCH = 500  # paths per call of the store's tool


@dataclass
class Effect:
    """Location of each file of a run, added as files are made. `where` counts chunks by node."""

    bed: GainBed
    folder: str
    work: Workload
    placement: Placement
    chosen: dict[int, str] = field(default_factory=dict)
    group: dict[int, int] = field(default_factory=dict)
    where: dict[int, Counter[int]] = field(default_factory=dict)

    def prepare(self) -> None:
        """Make the directories, one for each place."""
        root = self.bed.mount / self.folder
        root.mkdir()
        copies = () if self.placement.copies is None else self.placement.copies.tolist()
        wanted = {str(min(n, MAX_COPIES)) for n in copies if n > 1} | {PLAIN}
        names = [f"node_{node.label}" for node in self.bed.nodes]
        for name in (*sorted(wanted), *names, *self._bound_copies()):
            (root / name).mkdir()
            self.bed.give(root / name, name)

    def _bound_copies(self) -> list[str]:
        """Return the places for files that are bound to a node and have more copies elsewhere."""
        p = self.placement
        if p.law is None or p.copies is None:
            return []
        bound = np.isin(p.law, [law("node"), law("local"), law("group")])
        counts = sorted({min(n, MAX_COPIES) for n in p.copies[bound].tolist() if n > 1})
        return [f"node_{node.label}_{n}" for n in counts for node in self.bed.nodes]

    def choose(self, file: int, node: int | None) -> str:
        """Return the place of a file made on `node` (None: before the run); it never changes."""
        if file not in self.chosen:
            self.chosen[file] = self._place(file, node)
        return self.chosen[file]

    def path(self, file: int, mount: Path) -> Path:
        """Return the path of a file below a mount, after its place was chosen."""
        return mount / self.folder / self.chosen[file] / f"f{file}"

    def _place(self, file: int, node: int | None) -> str:
        p = self.placement
        kind = -1 if p.law is None else int(p.law[file])
        target = -1 if p.target is None else int(p.target[file])
        copies = 0 if p.copies is None else min(int(p.copies[file]), MAX_COPIES)
        if kind == law("node"):
            return self._node(target, copies)
        if kind == law("local") and node is not None:
            return self._node(node, copies)
        if kind == law("group"):
            first = len(self.group) % len(self.bed.nodes) if node is None else node
            return self._node(self.group.setdefault(target, first), copies)
        return str(copies) if copies > 1 else PLAIN

    def _node(self, node: int, copies: int) -> str:
        name = f"node_{self.bed.nodes[node].label}"
        return f"{name}_{copies}" if copies > 1 else name

    def located(self, files: list[int]) -> dict[int, Counter[int]]:
        """Return the chunks of each file by node: from its place, else as reported by the store."""
        labels = {f"node_{node.label}": i for i, node in enumerate(self.bed.nodes)}
        numbers = {node.label: i for i, node in enumerate(self.bed.nodes)}
        asked = []
        for file in files:
            known = labels.get(self.chosen[file])
            if known is not None:
                self.where[file] = Counter({known: self.chunks(file)})
            elif self.work.size[file] == 0:
                self.where[file] = Counter()  # the store keeps no chunk of it
            elif file not in self.where:
                asked.append(file)
        for at in range(0, len(asked), _BATCH):
            part = {self.path(f, self.bed.mount): f for f in asked[at : at + _BATCH]}
            for path, said in self.bed.where(list(part)).items():
                self.where[part[path]] = Counter({numbers[x]: n for x, n in said.items()})
        return {file: self.where[file] for file in files}

    def chunks(self, file: int) -> int:
        """Return the number of chunks or objects of a file."""
        return max(1, -(-int(self.work.size[file]) // self.bed.chunk))

    def astray(self) -> int:
        """Count the files placed on a node that the store has elsewhere."""
        put = {f: name for f, name in self.chosen.items() if name.startswith("node_")}
        put = {f: name for f, name in put.items() if self.work.size[f] > 0}
        paths, wrong = list(put), 0
        for at in range(0, len(paths), _BATCH):
            part = {self.path(f, self.bed.mount): put[f] for f in paths[at : at + _BATCH]}
            for path, said in self.bed.where(list(part)).items():
                label, _, copies = part[path].removeprefix("node_").partition("_")
                wrong += bool(said) and (label not in said or (not copies and len(said) > 1))
        return wrong

    def crossing(self, nodes: Mapping[int, int]) -> int:
        """Return the bytes that had to cross links to the files' nodes; `nodes`: task -> node."""
        work, total = self.work, 0
        task_of = np.repeat(np.arange(work.tasks), np.diff(work.op_begin)).tolist()
        self.located(list(self.chosen))
        for i, task in enumerate(task_of):
            if work.op_kind[i] == COMPUTE:
                continue
            where, moved = self.where[int(work.op_file[i])], int(work.op_bytes[i])
            chunks = self.chunks(int(work.op_file[i]))
            own = where[nodes[task]] / chunks
            held = where.total() / chunks if work.op_kind[i] == WRITE else min(1, where.total())
            total += round(moved * (held - own))
        return total

    def places(self) -> list[int]:
        """Return for each file the node that holds all of it; -1: none or several."""
        self.located(list(self.chosen))
        held = [self.where.get(file, Counter()) for file in range(self.work.files)]
        return [next(iter(nodes)) if len(nodes) == 1 else -1 for nodes in held]

    def remove(self) -> None:
        """Remove all files of the run."""
        subprocess.run(["rm", "-rf", self.bed.mount / self.folder], check=True)


def held(effect: Effect, files: list[int], moved: list[int]) -> Counter[int]:
    """Return the bytes of a task's input that each node holds; `moved`: bytes read per file."""
    found: Counter[int] = Counter()
    where = effect.located(files)
    for file, amount in zip(files, moved, strict=True):
        chunks = effect.chunks(file)
        for node, here in where[file].items():
            found[node] += amount * here // chunks
    return found
