"""GNU parallel: the `--joblog` file. It has no files and no pids; tasks are joined by command."""

from __future__ import annotations

from pathlib import Path

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    folder_of,
    nanoseconds,
    number,
    raw_name,
)
from tracehint.adapters.engines.unpack import read_lines
from tracehint.analyzer.tasks.describe import shorten, type_of_text
from tracehint.errors import InputError

_HEADER = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand"


def sniff(_path: Path, head: bytes) -> bool:
    """Whether the head is the header line of a job log."""
    return head.startswith(_HEADER.encode())


def read(path: Path) -> DeclaredGraph:
    """Read one task per line; a retried job has several lines with one number."""
    header, *lines = read_lines(path)
    if header.rstrip("\r") != _HEADER:
        raise InputError(f"{path}: not a job log of GNU parallel", f"Its first line is {_HEADER!r}")
    out = GraphBuilder("parallel", folder_of(path))
    attempts: dict[str, int] = {}
    for at, line in enumerate(lines, 2):
        fields = line.split("\t", 8)
        if len(fields) < 9 or nanoseconds(fields[2]) is None:
            # a command with a newline continues on the next lines
            if line.strip():
                out.bad_line(at)
            continue
        seq, host, start, runtime, _, _, code, signal, command = fields
        begin = nanoseconds(start) or 0
        attempts[seq] = attempt = attempts.get(seq, 0) + 1
        killed = int(number(signal) or 0)
        out.task(
            f"j{seq}" if attempt == 1 else f"j{seq}#{attempt}",
            name=shorten(command),
            type=type_of_text(command),
            command=raw_name(command),
            start_ns=begin,
            end_ns=begin + (nanoseconds(runtime) or 0),
            attempt=attempt,
            exit_status=128 + killed if killed else int(number(code) or 0),
            host="" if host == ":" else host,
        )
    return out.graph()
