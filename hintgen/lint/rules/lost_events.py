"""The recorder lost events: the picture has holes.

## What it finds
Runs in which events were dropped, records were cut or segments of the bundle
could not be read.

## Why it costs
An edge that was lost makes a broadcast look like a pipeline. Labels of the
tasks concerned carry a lower confidence.

## Example
A task with 200,000 tiny writes a second overran the ring buffer.

## What to do
Record again with larger buffers (`tracehint record --help`), or on a node
with less else to do.

## What it cannot see
Losses that the collector itself did not count.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural

RULE = LintRule("TH001", "lost-events", "warning", "0.1.0")


def check(context: Context) -> Iterator[Finding]:
    """One finding when the run lost events."""
    lost = int(context.analysis.run.get("lost_events") or 0)
    if lost == 0:
        return
    score = float(context.analysis.run["completeness"]["score"])
    row = {"template": "", "files": 0, "bytes": 0, "lost": lost, "score": score}
    message = f"{plural(lost, 'event')} lost; the record is {score:.1%} complete"
    yield context.finding(
        RULE,
        row,
        message,
        evidence=("lost", "score"),
        fix="record again with larger buffers: tracehint record --help",
    )
