"""Sentences for a label's evidence and for its placement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

Evidence = Mapping[str, Any]


def _about(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def _readers(e: Evidence) -> str:
    aside = e.get("peeks", 0) if not e.get("peeks_decide") else 0
    return f"{e['n']:,} readers" + (f" (excluding {plural(aside, 'header read')})" if aside else "")


def _broadcast(e: Evidence) -> str:
    return (
        f"{_readers(e)}, {e['concurrent_readers']:,} at the same time;"
        f" each byte is read by {_about(e['m'])} of them"
    )


def _scatter(e: Evidence) -> str:
    if e.get("all_to_all"):
        return f"{_readers(e)} each take a part of all {e['all_to_all_files']:,} files (a shuffle)"
    regions = f"{plural(e['regions'], 'region')} of about {size(e['region_bytes'])}"
    return f"{_readers(e)}, each its own part; {regions}"


def _partly(e: Evidence) -> str:
    return f"{_readers(e)} share {size(e['shared_bytes'] or 0)} of it, the rest is disjoint"


def _gather(e: Evidence) -> str:
    part = f"each its own part of about {size(e['region_bytes'] or 0)}"
    return f"{plural(e['writers'], 'writer')}, {e['mode']}, {part}"


def _reduce(e: Evidence) -> str:
    share = f", {e['share']:.0%} of what it reads" if e["share"] < 0.995 else ""
    return (
        f"{plural(e['fan_in'], 'file')} of {plural(e['producers'], 'task')}, read by one task"
        f" only{share}"
    )


def _distribute(e: Evidence) -> str:
    return f"one task writes {plural(e['fan_out'], 'file')} for {plural(e['consumers'], 'task')}"


def _pipeline(e: Evidence) -> str:
    chain = f"; a chain of {e['length']:,} files" if e["length"] > 1 else ""
    return f"one writer, one reader{chain}"


# pattern -> (reason, meaning of the placement); `{count}` is the number of copies.
WORDS: dict[str, tuple[Callable[[Evidence], str], str]] = {
    "pipeline": (_pipeline, "keep it where it is written, run the reader there"),
    "broadcast": (_broadcast, "{count} copies"),
    "scatter": (_scatter, "blocks inside regions, each region at its reader"),
    "partly_shared": (_partly, "{count} copies"),
    "gather": (_gather, "blocks inside regions, placed for the next step"),
    "reduce": (_reduce, "put them on one node, run the reader there"),
    "distribute": (_distribute, "spread them over the readers' nodes"),
    "stage_in": (lambda _: "an input with one reader", "stage it to its reader's node"),
    "stage_out": (lambda _: "a result, not read in the run", ""),
    "concurrently_shared": (lambda _: "tasks exchange data through it: no hint", ""),
}


def why(pattern: str, evidence: Evidence) -> str:
    """Return one line with the figures that determined the label."""
    entry = WORDS.get(pattern)
    try:
        return entry[0](evidence) if entry else ""
    except (KeyError, TypeError, ValueError):
        return ""  # evidence of another program


def advice(pattern: str, placement: str) -> str:
    """Return one line with the actions of the placement; empty for the default."""
    if placement == "default" or pattern not in WORDS:
        return ""
    return WORDS[pattern][1].format(count=placement.rpartition("=")[2]).strip()
