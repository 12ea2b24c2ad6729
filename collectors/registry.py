"""The collectors, in the order in which `auto` tries them. Adding one is one line."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field

from tracehint.collectors.base import Availability, Collector
from tracehint.errors import CollectorError


@dataclass(frozen=True)
class Entry:
    """Where a collector lives. `auto`: may be chosen without being asked for."""

    module: str
    factory: str
    auto: bool = False
    arguments: dict[str, object] = field(default_factory=dict)


COLLECTORS: dict[str, Entry] = {
    "ebpf": Entry("tracehint.collectors.ebpf", "EbpfCollector", auto=True),
    "strace": Entry("tracehint.collectors.strace", "StraceCollector", auto=True),
    "strace-light": Entry(
        "tracehint.collectors.strace", "StraceCollector", arguments={"light": True}
    ),
    "bpftrace": Entry("tracehint.collectors.bpftrace", "BpftraceCollector"),
    "darshan": Entry("tracehint.collectors.darshan", "DarshanCollector"),
}


def load(name: str) -> Collector | None:
    """The collector, or None where this installation does not contain it."""
    entry = COLLECTORS[name]
    try:
        factory = getattr(importlib.import_module(entry.module), entry.factory)
    except (ImportError, AttributeError):
        return None
    collector: Collector = factory(**entry.arguments)
    return collector


def check(name: str) -> Availability:
    """Whether the collector can run here; never raises."""
    collector = load(name)
    if collector is None:
        return Availability(
            False, "not part of this installation", "Install a tracehint built with it."
        )
    try:
        return collector.check()
    except Exception as error:  # a failing check is an answer, not a crash
        return Availability(False, f"its check failed: {error}", "Report this as a bug.")


def choose(name: str) -> tuple[Collector, str]:
    """The collector to use, and the sentence that says which and why.

    Raises CollectorError where the wish cannot be met, naming the remedy.
    """
    if name != "auto":
        found = check(name)
        collector = load(name)
        if collector is None or not found.usable:
            raise CollectorError(f"{name}: {found.reason}", found.remedy)
        return collector, f"collector {name}: {found.reason}"
    reasons: list[str] = []
    for candidate, entry in COLLECTORS.items():
        if not entry.auto:
            continue
        found = check(candidate)
        collector = load(candidate)
        if found.usable and collector is not None:
            why = f"collector {candidate}: {found.reason}"
            skipped = "".join(f"\n  not {r}" for r in reasons)
            return collector, why + skipped
        reasons.append(f"{candidate}: {found.reason}. {found.remedy}".strip())
    raise CollectorError(
        "no collector can run here:\n  " + "\n  ".join(reasons),
        "See `tracehint doctor` for what each one needs.",
    )
