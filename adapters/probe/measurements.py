"""What a probe measured, as its steps record it and as a cluster file states it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tracehint.analyzer.predict.cluster import Range


@dataclass(frozen=True)
class Known:
    """A number of the file, or a word: its place, what was measured, and from what."""

    table: str
    key: str
    value: Range | str
    source: str


def exact(value: float) -> Range:
    """A number without a range."""
    return Range(value, value, value)


@dataclass(frozen=True)
class ProcessorWork:
    """Seconds that the processors of a machine worked, in so many seconds, for so many bytes or
    calls of its nodes; `over`: bytes that came in over their links."""

    busy: float
    seconds: float
    amount: float
    over: float


@dataclass
class Seen:
    """Samples by name: seconds of calls (`create`, `close`, `open`, `small_read_local`, ...), calls
    per second of all nodes together (`creates`, `opens`), bytes per second (`local`, `remote`,
    `link_in`, `link_out`, ...). `where`: big file -> nodes that hold it; `laws`: of the small files
    of one node in their order, who holds them; `shares`: bytes over the links by bytes written."""

    nodes: int
    cores: int
    memory: int
    size: int
    samples: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    where: dict[str, list[int]] = field(default_factory=dict)
    laws: list[list[int]] = field(default_factory=list)
    keeps: bool = False  # clients have a memory that no `fadvise` empties
    shares: list[float] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    machines: list[str] = field(default_factory=list)  # of each node; "": not known
    slots: int = 0  # of a node, as the batch system says; 0: there is none
    work: dict[str, list[ProcessorWork]] = field(default_factory=lambda: defaultdict(list))

    @property
    def writing(self) -> str:
        """The agent's job that writes until the node is rid of the bytes."""
        return "stored" if self.keeps else "write"

    @property
    def looking(self) -> str:
        """The agent's job that reads a few bytes of what may have been read before."""
        return "direct" if self.keeps else "read"
