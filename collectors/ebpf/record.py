"""A recording with eBPF from the first to the last step: prepare, run, convert, clean up."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from tracehint.collectors.base import RecordRequest, RecordResult
from tracehint.collectors.begin import begin, new_manifest
from tracehint.collectors.ebpf.blind import BLIND, LOADER
from tracehint.collectors.ebpf.follow import follow_arguments, follow_notes, followed_command
from tracehint.collectors.ebpf.later import leave_spool, wants_later
from tracehint.collectors.ebpf.missed import add_missed
from tracehint.collectors.run import Ended, run_child, runnable, told
from tracehint.collectors.session import child_environment
from tracehint.errors import NotBegunError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.losses import losses_of
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import SPOOL_DIR
from tracehint.schemas.writer import BundleWriter
from tracehint.schemas.writing import write_bundle

_PR_SET_CHILD_SUBREAPER = 36
# options of the request that go to the loader
_LOADER_OPTIONS = ("ring", "extents", "processes", "linger")


def record(request: RecordRequest) -> RecordResult:
    """Run the command and write the bundle; the spool stays if converting fails.

    Raises CommandError, BundleError, CollectorError before the command was
    started. Afterwards problems are notes or messages, and the command's own
    status is returned.
    """
    command: tuple[str, ...] = ()
    later = wants_later(request)
    if request.follow is None:
        command = runnable(request.command)
    followed = followed_command(request.follow) if request.follow is not None else None
    manifest = new_manifest(
        request,
        "ebpf",
        blind_to=BLIND,
        command=followed,
        unfinished="The recorder did not reach its end; the tables come from its spool.",
    )
    writer, spool = begin(request, manifest, SPOOL_DIR)
    ended = _run(_loader_command(request, spool, command), request, spool)
    manifest.ended_ns = time.time_ns()
    manifest.exit_status = ended.status if request.follow is None else None
    losses: dict[str, int] = {}
    with told(f"What was recorded is in {spool}."):
        end = _json(spool / "end.json")
        manifest.notes = []
        if request.follow is not None:
            manifest.notes = follow_notes(request.follow, int(end.get("outlived", 0)))
        finish = leave_spool if later else _convert
        losses = finish(request, writer, manifest, end)
    return RecordResult(ended.status, ended.signal, losses)


def _loader_command(request: RecordRequest, spool: Path, command: tuple[str, ...]) -> list[str]:
    chosen = [f"--{k}={v}" for k, v in request.options.items() if k in _LOADER_OPTIONS]
    if request.follow is not None:
        return [str(LOADER), "-o", str(spool), *chosen, *follow_arguments(request.follow)]
    return [str(LOADER), "-o", str(spool), *chosen, "--", *command]


def _run(argv: list[str], request: RecordRequest, spool: Path) -> Ended:
    """The loader and below it the command; if the loader dies, the command still ends properly."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        ended = run_child(argv, child_environment(request))
        if not (spool / "start.json").exists():
            shutil.rmtree(request.output, ignore_errors=True)
            raise NotBegunError(
                "the eBPF tracer could not begin; nothing was "
                + ("run" if request.follow is None else "recorded"),
                "See the message above and `tracehint doctor`; or use --collector strace.",
            )
        end = _json(spool / "end.json")
        if not end and request.follow is not None:
            return ended
        if not end:
            return _orphan(_json(spool / "start.json").get("command")) or ended
        number = end.get("signal")
        return Ended(int(end.get("exit_status", ended.status)), int(number) if number else None)
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _orphan(pid: object) -> Ended | None:
    """The loader was killed: the command is our child now; wait for it."""
    print("tracehint: the recorder was killed; the command goes on", file=sys.stderr)
    if not isinstance(pid, int):
        return None
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return None
    code = os.waitstatus_to_exitcode(status)
    return Ended(code) if code >= 0 else Ended(128 - code, -code)


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _convert(
    request: RecordRequest, writer: BundleWriter, manifest: Manifest, end: dict[str, Any]
) -> dict[str, int]:
    """From the spool to Parquet; what was lost, by kind."""
    skip_pandas()
    from tracehint.schemas.spool.convert import convert_spool

    tables = convert_spool(request.output, manifest)
    if request.follow is not None and request.follow.missed:
        missed = Path(request.follow.missed)
        add_missed(tables, manifest.notes, manifest.hosts[0].name, missed)
    manifest.complete = bool(end)
    write_bundle(writer, tables, manifest)
    shutil.rmtree(request.output / SPOOL_DIR, ignore_errors=True)
    return losses_of(tables["losses"])
