"""The data flow of a small run, byte by byte in plain Python: slow and obvious.

One list of bytes per file; each byte has its last writer, the version and the write. Every
statement of docs/reference/flow.md about versions, edges and roles is one line here.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

LARGEST = 64
BEFORE = -1  # number of the write of bytes that existed before, or never did


@dataclass
class Byte:
    """Owner of a byte (None: older content), whether it is a hole, and the write that set it."""

    owner: str | None
    hole: bool
    version: int = 0
    write: int = BEFORE


@dataclass
class File:
    """One inode."""

    path: str
    size: int
    existed: bool
    bytes: list[Byte] = field(default_factory=list)
    version: int = 0
    start: int = 0  # the event that began the version
    writers: set[str] = field(default_factory=set)  # of this version
    readers: set[str] = field(default_factory=set)  # cause a new version at the next change
    events: int = 0
    gone: bool = False
    replaced: bool = False
    emptied: list[str] = field(default_factory=list)
    written: bool = False
    # per version
    wrote: dict[int, dict[str, set[int]]] = field(default_factory=dict)
    moved: dict[int, dict[str, int]] = field(default_factory=dict)
    read: dict[int, dict[str, set[int]]] = field(default_factory=dict)
    links: dict[int, dict[tuple[str, str], set[int]]] = field(default_factory=dict)
    owned: dict[int, dict[str, set[int]]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    writes: dict[int, tuple[int, str]] = field(default_factory=dict)  # write -> version, task
    seen: set[int] = field(default_factory=set)  # writes that another task has read


class Reference:
    """Replay of a run, one operation after the other, and queries of the result."""

    def __init__(self, engines: set[str]) -> None:
        self.engines = engines
        self.files: list[File] = []
        self.clock = 0

    def create(self, path: str, size: int, *, existed: bool, units: int = LARGEST) -> File:
        """Add a new inode; one that existed before has content that no task in the run wrote.

        `units`: capacity of the file in bytes.
        """
        file = File(path, size if existed else 0, existed)
        hole = not existed
        file.bytes = [Byte(None, hole) for _ in range(units)]
        self.files.append(file)
        return file

    def remove(self, file: File, *, replaced: bool) -> None:
        file.gone, file.replaced = True, replaced

    def read(self, task: str, file: File, start: int, end: int) -> None:
        self._tick(file)
        end = min(end, file.size)
        foreign = [i for i in range(start, end) if file.bytes[i].owner != task]
        if task in self.engines or not foreign:
            return
        writer = task in file.writers
        if not writer or any(file.bytes[i].write >= file.start for i in foreign):
            file.readers.add(task)
        for i in foreign:
            byte = file.bytes[i]
            version = min(byte.version, file.version) if writer else file.version
            file.read.setdefault(version, {}).setdefault(task, set()).add(i)
            if byte.owner is not None and not byte.hole:
                pair = (byte.owner, task)
                file.links.setdefault(version, {}).setdefault(pair, set()).add(i)
                file.seen.add(byte.write)
        self._sized(file)

    def write(self, task: str, file: File, start: int, end: int) -> None:
        self._tick(file)
        self._maker(file, task)
        if self._read_by_another(file, task):
            self._begin(file)
        file.writers.add(task)
        for i in range(start, end):
            file.bytes[i] = Byte(task, False, file.version, self.clock)
        file.written = True
        file.writes[self.clock] = (file.version, task)
        file.wrote.setdefault(file.version, {}).setdefault(task, set()).update(range(start, end))
        moved = file.moved.setdefault(file.version, defaultdict(int))
        moved[task] += end - start
        file.size = max(file.size, end)
        self._sized(file)

    def truncate(self, task: str, file: File, size: int) -> None:
        file.emptied.append(task)
        self._maker(file, task)
        if size >= file.size:
            file.size = size
            self._sized(file)
            return
        self._tick(file)
        if self._read_by_another(file, task) or file.writers - {task}:
            self._begin(file)
        file.writers.add(task)
        for i in range(size, len(file.bytes)):
            file.bytes[i] = Byte(task, True, file.version, self.clock)
        file.size = size
        self._sized(file)

    def finish(self) -> None:
        for file in self.files:
            self._close(file)

    def _tick(self, file: File) -> None:
        self.clock += 1
        file.events += 1

    def _maker(self, file: File, task: str) -> None:
        """Assign bytes that never existed to the first task that changed the file."""
        for byte in file.bytes:
            if byte.owner is None and not file.existed:
                byte.owner = task

    def _read_by_another(self, file: File, task: str) -> bool:
        others = file.readers - {task}
        return bool(others) or (task in file.readers and task not in file.writers)

    def _begin(self, file: File) -> None:
        self._close(file)
        file.version += 1
        file.start = self.clock
        file.writers, file.readers = set(), set()

    def _close(self, file: File) -> None:
        owned: dict[str, set[int]] = {}
        for i, byte in enumerate(file.bytes):
            if byte.owner is not None and not byte.hole:
                owned.setdefault(byte.owner, set()).add(i)
        file.owned[file.version] = owned

    def _sized(self, file: File) -> None:
        file.sizes[file.version] = file.size

    # results in the form of tests.support.flow_cut.View

    def entries(self) -> list[tuple[str, int, File, int]]:
        """Return (path, version of the path, file, version of the file) of all versions in use."""
        found = []
        for path in dict.fromkeys(f.path for f in self.files):
            number = 0
            for file in (f for f in self.files if f.path == path):
                for version in range(file.version + 1):
                    if self.producers(file, version) or self.consumers(file, version):
                        found.append((path, number, file, version))
                        number += 1
        return found

    def consumers(self, file: File, version: int) -> dict[str, set[int]]:
        return {t: b for t, b in file.read.get(version, {}).items() if b}

    def edges(self, file: File, version: int) -> dict[tuple[str, str], set[int]]:
        links = file.links.get(version, {})
        return {pair: b for pair, b in links.items() if not self.engines & set(pair)}

    def producers(self, file: File, version: int) -> dict[str, tuple[int, int, int, bool]]:
        """Map each task to its bytes, unique bytes, owned bytes, superseded."""
        found = {}
        for task, wrote in file.wrote.get(version, {}).items():
            owned = file.owned[version].get(task, set())
            ids = {w for w, (v, t) in file.writes.items() if (v, t) == (version, task)}
            left = {b.write for b in file.bytes} & ids
            lost = not (file.seen & ids) and (not left or file.replaced)
            lost &= all(task != p for p, _ in file.links.get(version, {}))
            found[task] = (file.moved[version][task], len(wrote), len(owned), lost)
        for task, owned in file.owned.get(version, {}).items():
            if task not in found:
                lost = file.replaced and all(task != p for p, _ in file.links.get(version, {}))
                found[task] = (0, len(owned), len(owned), lost)
        for task in file.emptied[:1] if not file.written and version == 0 else []:
            found[task] = (0, 0, 0, file.replaced)
        return {t: row for t, row in found.items() if t not in self.engines}

    def role(self, file: File, version: int, *, last: bool) -> str:
        if self.consumers(file, version):
            return "intermediate" if self.producers(file, version) else "input"
        return "output" if last and not file.gone else "scratch"

    def cycles(self) -> bool:
        """Whether edges form a cycle, or a task is producer and consumer in one version."""
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        for _, _, file, version in self.entries():
            pairs = self.edges(file, version)
            graph.add_edges_from(pairs)
            if {p for p, _ in pairs} & {c for _, c in pairs}:
                return True
        return not nx.is_directed_acyclic_graph(graph)
