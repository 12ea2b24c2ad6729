"""The contract JSON of an analysis (schemas/analysis.schema.json), out and in.

Writing makes columns of text of the columns of numbers and joins them, so its cost grows with
the output and not with Python objects. It goes in blocks of rows, so its memory does not grow.
Names that are not UTF-8 are written with U+FFFD and, exactly, as base64 beside it; numbers are
never NaN.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.output.reading import from_json

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.output.sections import Section

__all__ = ["from_json", "to_json", "write_json"]


def write_json(analysis: Analysis, threads: int = 1) -> Iterator[bytes]:
    """The contract JSON in pieces, one line per task, file, edge and group."""
    from tracehint.analyzer.model import ANALYSIS_SCHEMA
    from tracehint.analyzer.output import sections

    head = json.dumps({"schema": ANALYSIS_SCHEMA, "run": analysis.run}, allow_nan=False)
    yield head[:-1].encode()
    for name, section in (
        ("tasks", sections.tasks),
        ("files", sections.files),
        ("edges", sections.edges),
        ("groups", sections.groups),
    ):
        yield f',\n"{name}":['.encode()
        yield from _pieces(section(analysis), threads)
        yield b"]"
    yield b"}\n"


def _pieces(section: Section, threads: int) -> Iterator[bytes]:
    """The blocks in their order, a few of them made ahead."""
    if threads < 2 or len(section.bounds) < 2:
        yield from (section.text(low, high) for low, high in section.bounds)
        return
    from collections import deque
    from concurrent.futures import Future, ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[bytes]] = deque()
        for low, high in section.bounds:
            ahead.append(pool.submit(section.text, low, high))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def to_json(analysis: Analysis) -> dict[str, Any]:
    """The contract JSON as Python objects."""
    data: dict[str, Any] = json.loads(b"".join(write_json(analysis)))
    return data
