"""Records of a probe: the samples of its steps, and parameters of a cluster file."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tracehint.analyzer.predict.cluster import Range


@dataclass(frozen=True)
class Known:
    """A parameter of the cluster file: its table and key, its range or word, and its source."""

    table: str
    key: str
    value: Range | str
    source: str


def exact(value: float) -> Range:
    """Return a range of a single value."""
    return Range(value, value, value)


@dataclass(frozen=True)
class ProcessorWork:
    """Processor seconds (`busy`) of a machine in `seconds` of time, for `amount` bytes or calls of
    its nodes; `over`: bytes received over their links."""

    busy: float
    seconds: float
    amount: float
    over: float


@dataclass
class Seen:
    """Samples by name: seconds of calls (`create`, `close`, `open`, `small_read_local`, ...), calls
    per second of all nodes together (`creates`, `opens`), bytes per second (`local`, `remote`,
    `link_in`, `link_out`, ...). `where`: big file -> nodes that hold it; `laws`: nodes that hold
    each small file of the first node; `shares`: bytes received over the links per byte written."""

    nodes: int
    cores: int
    memory: int
    size: int
    samples: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    where: dict[str, list[int]] = field(default_factory=dict)
    laws: list[list[int]] = field(default_factory=list)
    keeps: bool = False  # clients have a cache that `fadvise` does not drop
    shares: list[float] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    machines: list[str] = field(default_factory=list)  # boot id of each node; "": unknown
    slots: int = 0  # of a node, from the batch system; 0: no batch system
    work: dict[str, list[ProcessorWork]] = field(default_factory=lambda: defaultdict(list))

    @property
    def writing(self) -> str:
        """The agent's job that writes until the bytes have left the node."""
        return "stored" if self.keeps else "write"

    @property
    def looking(self) -> str:
        """The agent's job that reads a few bytes that the client may have cached."""
        return "direct" if self.keeps else "read"
