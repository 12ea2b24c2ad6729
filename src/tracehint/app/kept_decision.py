"""Cache of the decision for a workflow's next run (hints and plan): .tracehint/decision.json.

The cache only saves time: a decision that cannot be read, or that was made for other runs, another
cluster, other nodes or another link, is computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Raw
from msgspec.json import decode, encode

from tracehint.adapters.project.state import DECISION
from tracehint.errors import InputError
from tracehint.limits import limit
from tracehint.schemas.manifest import MANIFEST_NAME
from tracehint.schemas.plain import inside, open_plain, replacing
from tracehint.version import __version__

if TYPE_CHECKING:
    from tracehint.adapters.place.allocation import Allocation
    from tracehint.adapters.place.hosts import Host
    from tracehint.adapters.project.state import KnownRun, ProjectState
    from tracehint.hintgen.hints.model import HintFile

SCHEMA = "tracehint.decision/3"
MAX_RATIO = 1.25  # maximum ratio of measured links, or step start times, that one plan serves
MAX_DIFFERENCE_S = 0.2  # seconds; start times that differ by at most this are alike


@dataclass(frozen=True, kw_only=True)
class _DecisionFacts:
    placed: bool
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    roots: tuple[str, ...] = ()
    measured: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Decision(_DecisionFacts):
    """Hints with the plan and rules for first names; `placed`: tasks or jobs are assigned to nodes;
    `seconds`: duration of the decision; `roots`: data roots, if no run provides them; `measured`:
    the link (Mbit/s) and step start time (s) that it was made for."""

    hints: HintFile

    def serves(self, nodes: Allocation | None) -> bool:
        """Whether its link and start time are close to those of `nodes`, measured now."""
        return _are_near(self.measured, measured_of(nodes))


@dataclass(frozen=True, kw_only=True)
class _Kept(_DecisionFacts):
    """Contents of the file; the hints stay raw JSON, as they have a parser of their own."""

    schema: str
    key: str
    hints: Raw


def _facts(of: _DecisionFacts) -> dict[str, Any]:
    return {field.name: getattr(of, field.name) for field in fields(_DecisionFacts)}


def decision_key(
    state: ProjectState,
    runs: Sequence[KnownRun],
    cluster: str | None,
    hosts: Sequence[Host],
    batch: Sequence[Host],
) -> str:
    """Return a hash of all inputs of a decision but the measured link. For batch nodes only their
    number and slots count, not their names."""
    bundles = [state.bundle(run) for run in runs]
    stamps = [(bundle / MANIFEST_NAME).stat().st_mtime_ns for bundle in bundles]
    known = [
        (str(bundle.absolute()), stamp, run.hinted, run.store, run.left_out)
        for bundle, stamp, run in zip(bundles, stamps, runs, strict=True)
    ]
    before = [run.left_out for run in state.runs if run.place is None][-1:]
    named = Path(cluster).read_bytes() if cluster and Path(cluster).is_file() else b""
    free = (len(batch), sum(host.slots for host in batch))
    nodes = [(host.name, host.slots) for host in hosts]
    parts = (__version__, known, before, cluster, named, nodes, free)
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()


def save_decision(folder: Path, key: str, decision: Decision, name: str = DECISION) -> None:
    """Write the decision to the folder; a failed write is ignored."""
    from tracehint.hintgen.hints.hintfile import to_json

    text = Raw(json.dumps(to_json(decision.hints)).encode())
    kept = _Kept(schema=SCHEMA, key=key, hints=text, **_facts(decision))
    with (
        suppress(OSError),
        replacing(inside(folder) / name, 0o600) as fd,
        os.fdopen(fd, "wb", closefd=False) as stream,
    ):
        stream.write(encode(kept))


def load_decision(folder: Path, key: str, name: str = DECISION) -> Decision | None:
    """Return the decision that was kept for this key; None if there is none."""
    from tracehint.hintgen.hints.hintfile import parse_hints

    try:
        with os.fdopen(open_plain(inside(folder) / name), "rb") as stream:
            kept = decode(stream.read(limit("hints-bytes")), type=_Kept)
        if (kept.schema, kept.key) != (SCHEMA, key):
            return None
        return Decision(hints=parse_hints(bytes(kept.hints), name), **_facts(kept))
    except (OSError, ValueError, RecursionError, InputError):
        return None


def measured_of(nodes: Allocation | None) -> tuple[float, ...]:
    """Return link (Mbit/s) and step start time (s) that a trial measured; empty without nodes."""
    return (nodes.link_mbit, nodes.start_s) if nodes is not None else ()


def _are_near(known: Sequence[float], now: Sequence[float]) -> bool:
    """Whether both links and both start times are close enough for one plan."""
    if len(known) != len(now):
        return False
    pairs = list(zip(known, now, strict=True))
    near = [max(pair) <= MAX_RATIO * min(pair) for pair in pairs]
    return all(near) or (near[:1] == [True] and abs(known[1] - now[1]) <= MAX_DIFFERENCE_S)
