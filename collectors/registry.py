"""The collectors, in the order in which `auto` tries them. Adding one is one line."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tracehint.collectors.base import Availability, Collector
from tracehint.errors import CollectorError


@dataclass(frozen=True)
class CollectorEntry:
    """Import location of a collector. `auto`: it may be chosen without an explicit request.

    `before_run`: the check before a recording. Cheaper than `check` if the start of the recording
    itself detects the remaining problems (NotBegunError).
    """

    module: str
    factory: str
    auto: bool = False
    before_run: str = "check"
    arguments: dict[str, object] = field(default_factory=dict)


COLLECTORS: dict[str, CollectorEntry] = {
    "ebpf": CollectorEntry(
        "tracehint.collectors.ebpf", "EbpfCollector", auto=True, before_run="conditions"
    ),
    "preload": CollectorEntry("tracehint.collectors.preload", "PreloadCollector", auto=True),
    "strace-light": CollectorEntry(
        "tracehint.collectors.strace", "StraceCollector", auto=True, arguments={"light": True}
    ),
    "strace": CollectorEntry("tracehint.collectors.strace", "StraceCollector", auto=True),
    "bpftrace": CollectorEntry("tracehint.collectors.bpftrace", "BpftraceCollector"),
    "all": CollectorEntry("tracehint.collectors.both", "BothCollectors"),
    "darshan": CollectorEntry("tracehint.collectors.darshan", "DarshanCollector"),
}


def load(name: str) -> Collector | None:
    """Return the collector, or None if this installation does not contain it."""
    entry = COLLECTORS[name]
    try:
        factory = getattr(importlib.import_module(entry.module), entry.factory)
    except (ImportError, AttributeError):
        return None
    collector: Collector = factory(**entry.arguments)
    return collector


def check(name: str, method: str = "check") -> Availability:
    """Return whether the collector can run here, by this method of it; never raises."""
    collector = load(name)
    if collector is None:
        return Availability(
            False, "not part of this installation", "Install a tracehint build that includes it."
        )
    try:
        found: Availability = getattr(collector, method)()
        return found
    except Exception as error:  # a failing check is a result, not a crash
        return Availability(False, f"its check failed: {error}", "Report this as a bug.")


def choose(name: str, refused: Mapping[str, str] | None = None) -> tuple[Collector, str]:
    """Return the collector to use, and a sentence with the choice and its reason.

    `refused`: collectors that `auto` must not choose (again), with reasons. Raises CollectorError,
    with a remedy, if the request cannot be met.
    """
    if name != "auto":
        found = check(name, COLLECTORS[name].before_run)
        collector = load(name)
        if collector is None or not found.usable:
            raise CollectorError(f"{name}: {found.reason}", found.remedy)
        warning = f"\n  warning: {found.incomplete}" if found.incomplete else ""
        return collector, f"recording with collector {name} ({found.reason}){warning}"
    reasons: list[str] = []
    for candidate, entry in COLLECTORS.items():
        if not entry.auto:
            continue
        if refused and candidate in refused:
            reasons.append(f"{candidate}: {refused[candidate]}")
            continue
        found = check(candidate, entry.before_run)
        collector = load(candidate)
        if found.decides and not found.broken and collector is not None:
            why = f"recording with collector {candidate} ({found.reason})"
            skipped = "".join(f"\n  not {r}" for r in reasons)
            return collector, why + skipped
        if found.broken:
            raise CollectorError(f"{candidate}: {found.reason}", found.remedy)
        why_not = found.incomplete or found.reason
        reasons.append(f"{candidate}: {why_not}. {found.remedy}".strip())
    raise CollectorError(
        "no collector can run here:\n  " + "\n  ".join(reasons),
        "See `tracehint doctor` for what each one needs.",
    )
