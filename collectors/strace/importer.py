"""Import strace logs recorded elsewhere into a bundle."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.collectors.strace.lexer import _CALL, _OTHER, Call, LexStats, lex, unescape
from tracehint.errors import InputError
from tracehint.limits import limit
from tracehint.schemas.manifest import Manifest, RecordingHost, read_manifest
from tracehint.schemas.recovery import RAW_DIR
from tracehint.schemas.store import Bundle, add_losses
from tracehint.schemas.wording import plural
from tracehint.schemas.writer import BundleWriter, write_bundle
from tracehint.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa


_HEAD = 1 << 16
_SNIFF_LINES = 40
_BUFFERS = 64 << 20  # bytes of read buffers for all files of one set
_SUFFIX = re.compile(r"\.(\d{1,8})$")
_CWD = re.compile(rb'AT_FDCWD<((?:[^<>\\]|\\.)*)>|getcwd\("((?:[^"\\]|\\.)*)"')
_FORKED = re.compile(rb"(?:clone[23]?|v?fork)\(.*\) += (\d{1,7})\b")
_LINE_START = re.compile(rb"(\+\+\+ |--- |<\.\.\. |strace: )")


@dataclass(frozen=True)
class LogSet:
    """Log files of one traced run. `tids`: the process of each file (`-ff`), else 0."""

    paths: tuple[Path, ...]
    tids: tuple[int, ...]

    @property
    def per_process(self) -> bool:
        """Whether pids are in the file names (`-ff`) instead of in the lines."""
        return any(self.tids)


def head_of(path: Path) -> bytes:
    """Return the first 64 KiB; empty if the file cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD)
    except OSError:
        return b""


def looks_like_strace(head: bytes) -> bool:
    """Whether at least half of the first lines are calls, exits or signals of strace."""
    if b"\0" in head:
        return False
    lines = [line for line in head.split(b"\n") if line.strip()][:_SNIFF_LINES]
    if len(head) == _HEAD and len(lines) > 1:
        lines.pop()  # cut in the middle
    known = sum(1 for line in lines if _is_log_line(line))
    return known > 0 and known * 2 >= len(lines)


def _is_log_line(line: bytes) -> bool:
    if _CALL.match(line):
        return True
    rest = _OTHER.match(line)
    body = rest[4] if rest else b""
    return bool(_LINE_START.match(body)) or body.endswith(b"<unfinished ...>")


def group(paths: Sequence[Path]) -> list[LogSet]:
    """Group log files: `-ff` files with one prefix form a set, any other file its own set."""
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
    """Return the first working directory in the log (`AT_FDCWD</dir>` or getcwd), or None."""
    for path in logs.paths[:16]:
        found = _CWD.search(head_of(path))
        if found:
            return unescape(found[1] if found[1] is not None else found[2])
    return None


def _lines(path: Path, chunk: int) -> Iterator[bytes]:
    """Yield lines of a file, opened only to read a chunk: a set may have thousands of files."""
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
    """Yield all calls of the set, ordered by time."""
    if not logs.per_process:
        yield from lex(_lines(logs.paths[0], 1 << 20), stats, tid=1)
        return
    stats.per_process = True
    chunk = max(4096, min(1 << 18, _BUFFERS // len(logs.paths)))
    streams = [
        lex(_lines(path, chunk), stats, tid=tid)
        for path, tid in zip(logs.paths, logs.tids, strict=True)
    ]
    if _has_times(logs):
        yield from heapq.merge(*streams, key=attrgetter("t_ns"))
    else:
        yield from _order_by_waits(logs, streams)


def _has_times(logs: LogSet) -> bool:
    for path in logs.paths:
        for line in head_of(path).split(b"\n")[:_SNIFF_LINES]:
            found = _CALL.match(line)
            if found:
                return found[3] is not None
    return False


def _order_by_waits(logs: LogSet, streams: list[Iterator[Call]]) -> Iterator[Call]:
    """Order calls without a clock: a child's calls at its parent's wait for it, else at the end.

    Times are renumbered, one microsecond per call, to represent this order.
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
    """Return every process that another process of the set forked."""
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


NO_LOSS = (": empty", ": not a strace log")  # endings of problems that are not losses
_DAY_NS = 86_400 * 10**9
_CLOCK_NOTES = {
    "none": "The log has no times: only the order of calls is known, durations are not.",
    "relative": "The log has relative times only: the start is derived from the file's date.",
    "daytime": "The log has times of day only: the day is derived from the file's date.",
}
_BYTE_CALLS = (b"read", b"write", b"pread64", b"pwrite64", b"copy_file_range", b"mmap")


def import_strace(sources: Sequence[Path], output: Path, *, force: bool = False) -> Manifest:
    """Read all logs and write the bundle.

    Logs that cannot be read are listed in the manifest's notes and in the losses.
    Raises InputError if no log is usable.
    """
    paths, problems = find_logs(sources)
    sets = group(paths)
    parts: list[dict[str, pa.Table]] = []
    manifests: list[Manifest] = []
    for logs in sets:
        try:
            tables, manifest = read_set(logs, manifest_near(logs))
        except OSError as error:
            problems.append(f"{logs.paths[0].name}: {error.strerror or error}")
            continue
        if len(tables["processes"]):
            parts.append(tables)
            manifests.append(manifest)
        else:
            problems.append(f"{logs.paths[0].name}: no line was understood")
    if not parts:
        reasons = "; ".join(problems[:5]) or "no files"
        raise InputError(
            f"nothing to import: {reasons}",
            "Give logs of `strace -f -o FILE` or a directory of `strace -ff -o DIR/x`.",
        )
    from tracehint.collectors.join import join_manifests, join_tables

    manifest = manifests[0] if len(manifests) == 1 else join_manifests(manifests)
    if not all("bytes" in m.blind_to for m in manifests):
        # strace traced reads and writes: a log without them belongs to a process without I/O
        manifest.blind_to = [code for code in manifest.blind_to if code != "bytes"]
    manifest.notes += [f"log not read: {text}" for text in problems]
    bundle = Bundle(output, manifest, join_tables(parts))
    add_losses(
        bundle, [("unreadable_log", 1, text) for text in problems if not text.endswith(NO_LOSS)]
    )
    write_bundle(BundleWriter(output, force=force), bundle.tables, manifest)
    return manifest


def find_logs(sources: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the strace logs among and below the sources, and the skipped files with reasons."""
    found: list[Path] = []
    problems: list[str] = []
    for source in sources:
        if (source / RAW_DIR).is_dir():
            source = source / RAW_DIR  # a bundle whose recorder was killed
        if not source.exists():
            raise InputError(f"{source}: no such file or directory", "Check the path.")
        candidates = [source] if source.is_file() else _files_below(source, problems)
        for path in candidates:
            if not os.access(path, os.R_OK):
                problems.append(f"{path.name}: permission denied")
            elif looks_like_strace(head_of(path)):
                found.append(path)
            else:
                empty = path.stat().st_size == 0
                problems.append(f"{path.name}{NO_LOSS[not empty]}")
    return found, problems


def _files_below(folder: Path, problems: list[str]) -> list[Path]:
    """Return the regular files below a directory; symbolic links are not followed."""
    found: list[Path] = []

    def failed(error: OSError) -> None:
        problems.append(f"{error.filename}: {error.strerror}")

    for base, folders, names in os.walk(folder, onerror=failed):
        folders.sort()
        found += [
            p for n in sorted(names) if (p := Path(base) / n).is_file() and not p.is_symlink()
        ]
    return found


def manifest_near(logs: LogSet) -> Manifest | None:
    """Return the manifest of the bundle that contains the log (its recorder was killed)."""
    bundle = logs.paths[0].parent.parent
    if logs.paths[0].parent.name == RAW_DIR and (bundle / "manifest.json").is_file():
        return read_manifest(bundle)
    return None


def read_set(logs: LogSet, before: Manifest | None) -> tuple[dict[str, pa.Table], Manifest]:
    """Return tables and manifest of one set of logs; `before`: the manifest to complete."""
    from tracehint.collectors.strace.finish import finish
    from tracehint.collectors.strace.model import StraceSettings
    from tracehint.collectors.strace.parse import Parser

    named = os.fsencode(before.cwd) if before is not None else working_directory(logs)
    cwd = named if named else os.fsencode(logs.paths[0].parent.absolute())
    host = before.hosts[0].name if before is not None and before.hosts else "imported"
    settings = StraceSettings(host=host, cwd=cwd, complete=before is not None)
    stats = LexStats()
    parser = Parser(settings, stats)
    state = parser.feed(calls_of(logs, stats))
    shift = _shift(stats.clock, state.last_ns, logs.paths[-1])
    tables = finish(state, stats, shift_ns=shift)
    manifest = (
        before
        if before is not None
        else Manifest(
            program=f"tracehint {__version__}",
            collector="import:strace",
            cwd=os.fsdecode(cwd),
            hosts=[RecordingHost(name=host)],
            complete=True,
        )
    )
    _describe(manifest, tables, stats, known_cwd=named is not None, seen=state.seen)
    return tables, manifest


def _describe(
    manifest: Manifest,
    tables: dict[str, pa.Table],
    stats: LexStats,
    *,
    known_cwd: bool,
    seen: set[bytes],
) -> None:
    """Complete the manifest from the log: command, status, times, notes, blind spots."""
    import pyarrow.compute as pc

    processes = tables["processes"]
    first = processes.sort_by([("start_ns", "ascending"), ("proc", "ascending")])
    roots = [r for r in first.slice(0, 100_000).to_pylist() if r["parent"] is None and r["exe"]]
    if roots and not manifest.command:
        manifest.command = [os.fsdecode(a) for a in roots[0]["argv"] or [roots[0]["exe"]]]
    ended = [r for r in roots if r["end_ns"] is not None]
    if ended:
        signal, code = ended[-1]["exit_signal"], ended[-1]["exit_code"]
        manifest.exit_status = 128 + signal if signal else code
    starts, ends = pc.min(processes["start_ns"]).as_py(), pc.max(processes["end_ns"]).as_py()
    manifest.started_ns = manifest.started_ns or starts or 0
    manifest.ended_ns = ends
    manifest.notes = [f"{plural(stats.lines, 'line')} of strace's log, {stats.bad} not understood"]
    if stats.clock in _CLOCK_NOTES:
        manifest.notes.append(_CLOCK_NOTES[stats.clock])
    if not known_cwd:
        manifest.notes.append(
            f"The log does not name its working directory: relative paths are put below "
            f"{manifest.cwd} (strace -y names it)."
        )
    blind = ["io_uring", "mmap"]
    if not seen.intersection(_BYTE_CALLS):
        blind.insert(0, "bytes")
    if not seen.intersection((b"clone", b"clone3", b"fork", b"vfork")):
        blind.append("processes")
        if len(processes) > 1:
            manifest.notes.append("The log has no clone or fork calls: parents are not known.")
    manifest.blind_to = blind


def _shift(clock: str, last_ns: int, path: Path) -> int:
    """Return the ns to add to the log's times so that they count from 1970."""
    if clock == "unix":
        return 0
    info = path.stat()
    if clock != "daytime":
        return info.st_mtime_ns - last_ns
    local = datetime.fromtimestamp(info.st_mtime_ns // 10**9).astimezone()
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    base = int(midnight.timestamp()) * 10**9
    days = round((info.st_mtime_ns - base - last_ns) / _DAY_NS)
    return base + days * _DAY_NS
