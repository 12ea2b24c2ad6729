"""What was decided from a workflow's runs, kept for the next one: hints and plan for the same runs,
cluster and nodes, in .tracehint/decision.json.

It is a proposal to save time: whatever is not as it was written, or was made for other runs, for
other nodes or another link, is computed again.
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
ALIKE = 1.25  # times: measured links and starts of a step that one plan serves
ALIKE_S = 0.2  # between two starts that are that short


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
    """Hints, with those of the plan and of first names; `placed`: tasks or jobs have nodes;
    `seconds`: what it took to decide; `roots`: of the data, where no run has them; `measured`: the
    link that it is for, and the start of a step."""

    hints: HintFile

    def serves(self, nodes: Allocation | None) -> bool:
        """Whether its link is like the one that was measured now."""
        return _are_near(self.measured, measured_of(nodes))


@dataclass(frozen=True, kw_only=True)
class _Kept(_DecisionFacts):
    """The file; the text of the hints is left to their own reader."""

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
    """What a decision depends on besides the measured link. Jobs go to as many nodes as have free
    processors, whichever these are."""
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


def keep_decision(folder: Path, key: str, decision: Decision, name: str = DECISION) -> None:
    """Write it down, where that can be done."""
    from tracehint.hintgen.hints.hintfile import to_json

    text = Raw(json.dumps(to_json(decision.hints)).encode())
    kept = _Kept(schema=SCHEMA, key=key, hints=text, **_facts(decision))
    with (
        suppress(OSError),
        replacing(inside(folder) / name, 0o600) as fd,
        os.fdopen(fd, "wb", closefd=False) as stream,
    ):
        stream.write(encode(kept))


def kept_decision(folder: Path, key: str, name: str = DECISION) -> Decision | None:
    """The one for this key; None: there is none."""
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
    """What a trial of the nodes measured."""
    return (nodes.link_mbit, nodes.start_s) if nodes is not None else ()


def _are_near(known: Sequence[float], now: Sequence[float]) -> bool:
    """Whether link and start are near enough to each other."""
    if len(known) != len(now):
        return False
    pairs = list(zip(known, now, strict=True))
    near = [max(pair) <= ALIKE * min(pair) for pair in pairs]
    return all(near) or (near[:1] == [True] and abs(known[1] - now[1]) <= ALIKE_S)
