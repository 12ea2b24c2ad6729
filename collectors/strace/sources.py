"""strace logs as people have them: one file, several, or a directory of `-ff` files."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from tracehint.collectors.strace.decode import unescape
from tracehint.collectors.strace.lexer import _CALL, _OTHER, Call, LexStats, lex
from tracehint.limits import limit

_HEAD = 1 << 16
_SNIFF_LINES = 40
_BUFFERS = 64 << 20  # bytes of read buffers for all files of one set
_SUFFIX = re.compile(r"\.(\d{1,8})$")
_CWD = re.compile(rb'AT_FDCWD<((?:[^<>\\]|\\.)*)>|getcwd\("((?:[^"\\]|\\.)*)"')
_FORKED = re.compile(rb"(?:clone[23]?|v?fork)\(.*\) += (\d{1,7})\b")
_LINE_START = re.compile(rb"(\+\+\+ |--- |<\.\.\. |strace: )")


@dataclass(frozen=True)
class LogSet:
    """Files of one traced run. `tids`: the process of each file (`-ff`), else 0."""

    paths: tuple[Path, ...]
    tids: tuple[int, ...]

    @property
    def per_process(self) -> bool:
        """Whether the lines carry no pid and the file's name does."""
        return any(self.tids)


def head_of(path: Path) -> bytes:
    """The first 64 KiB; empty where the file cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD)
    except OSError:
        return b""


def looks_like_strace(head: bytes) -> bool:
    """Whether most of the first lines are calls, exits or signals as strace prints them."""
    if b"\0" in head:
        return False
    lines = [line for line in head.split(b"\n") if line.strip()][:_SNIFF_LINES]
    if len(head) == _HEAD and len(lines) > 1:
        lines.pop()  # cut in the middle
    known = sum(1 for line in lines if _known(line))
    return known > 0 and known * 2 >= len(lines)


def _known(line: bytes) -> bool:
    if _CALL.match(line):
        return True
    rest = _OTHER.match(line)
    body = rest[4] if rest else b""
    return bool(_LINE_START.match(body)) or body.endswith(b"<unfinished ...>")


def group(paths: Sequence[Path]) -> list[LogSet]:
    """Which files belong together: `-ff` files of one prefix are one set, others are alone."""
    alone: list[LogSet] = []
    sets: dict[tuple[Path, str], list[tuple[int, Path]]] = {}
    for path in paths:
        suffix = _SUFFIX.search(path.name)
        if suffix is None or _has_pids(head_of(path)):
            alone.append(LogSet((path,), (0,)))
        else:
            stem = path.name[: suffix.start()]
            sets.setdefault((path.parent, stem), []).append((int(suffix[1]), path))
    for members in sets.values():
        members.sort()
        alone.append(LogSet(tuple(p for _, p in members), tuple(t for t, _ in members)))
    return alone


def _has_pids(head: bytes) -> bool:
    for line in head.split(b"\n")[:_SNIFF_LINES]:
        found = _OTHER.match(line)
        if found and (found[1] or (found[2] and int(found[2]) < 1 << 22)):
            return True
    return False


def working_directory(logs: LogSet) -> bytes | None:
    """The first working directory that the log names (`AT_FDCWD</dir>` or getcwd)."""
    for path in logs.paths[:16]:
        found = _CWD.search(head_of(path))
        if found:
            return unescape(found[1] if found[1] is not None else found[2])
    return None


def _lines(path: Path, chunk: int) -> Iterator[bytes]:
    """Lines of a file that is open only while a chunk is read: thousands of files at once."""
    offset, rest = 0, b""
    while True:
        with path.open("rb") as stream:
            stream.seek(offset)
            data = stream.read(chunk)
        if not data:
            break
        offset += len(data)
        parts = (rest + data).split(b"\n")
        rest = parts.pop()
        if len(rest) > limit("strace-line"):
            yield rest
            rest = b""
        yield from parts
    if rest:
        yield rest


def calls_of(logs: LogSet, stats: LexStats) -> Iterator[Call]:
    """All calls of the set in the order of their time."""
    if not logs.per_process:
        yield from lex(_lines(logs.paths[0], 1 << 20), stats, tid=1)
        return
    stats.per_process = True
    chunk = max(4096, min(1 << 18, _BUFFERS // len(logs.paths)))
    streams = [
        lex(_lines(path, chunk), stats, tid=tid)
        for path, tid in zip(logs.paths, logs.tids, strict=True)
    ]
    if _timed(logs):
        yield from heapq.merge(*streams, key=attrgetter("t_ns"))
    else:
        yield from _by_waiting(logs, streams)


def _timed(logs: LogSet) -> bool:
    for path in logs.paths:
        for line in head_of(path).split(b"\n")[:_SNIFF_LINES]:
            found = _CALL.match(line)
            if found:
                return found[3] is not None
    return False


def _by_waiting(logs: LogSet, streams: list[Iterator[Call]]) -> Iterator[Call]:
    """No clock: a child's calls come where its parent has waited for it, else at the end.

    Times are renumbered, a microsecond per call, so that they tell this order.
    """
    left = dict(zip(logs.tids, streams, strict=True))
    children = _children(logs)
    clock = 0
    while left:
        roots = [tid for tid in left if tid not in children]
        stack = [left.pop(min(roots or left))]
        while stack:
            call = next(stack[-1], None)
            if call is None:
                stack.pop()
                continue
            waited = _waited_for(call)
            if waited in left:
                stack.append(left.pop(waited))
            clock += 1000
            yield call._replace(t_ns=clock, end_ns=clock)


def _children(logs: LogSet) -> set[int]:
    """Every process that another one of the set has forked."""
    found: set[int] = set()
    for path in logs.paths:
        for line in _lines(path, 1 << 18):
            made = _FORKED.match(line)
            if made:
                found.add(int(made[1]))
    return found


def _waited_for(call: Call) -> int:
    if call.name in (b"wait4", b"waitid", b"waitpid"):
        digits = re.match(rb"\d+", call.result)
        return int(digits[0]) if digits else 0
    return 0
