"""The eBPF collector: availability, and recording a command."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tracehint.collectors.base import Availability, RecordRequest, RecordResult
from tracehint.collectors.begin import begin, child_environment, new_manifest
from tracehint.collectors.ebpf.follow import follow_arguments, follow_notes, followed_command
from tracehint.collectors.ebpf.missed import add_missed
from tracehint.collectors.hostinfo import process_status
from tracehint.collectors.run import Ended, report_failures, run_child, runnable
from tracehint.errors import BundleError, NotBegunError, UsageError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.losses import losses_of
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import SPOOL_DIR
from tracehint.schemas.spool.constants import VERSION
from tracehint.schemas.spool.redact import lost_in_spool, redact_spool
from tracehint.schemas.writer import BundleWriter, write_bundle

LOADER = Path(__file__).parent / "bin" / "tracehint-rec"
NOT_BUILT = LOADER.with_name("not-built.txt")  # from tracer.cmake: why there is no loader
BLIND: tuple[str, ...] = ()


NOTE = (
    "The recorder's spool is converted when the bundle is read; `tracehint merge` writes the "
    "tables for other programs and versions."
)


def keeps_spool(request: RecordRequest) -> bool:
    """Whether to keep the spool unconverted. Raises UsageError if that is not possible."""
    value = request.options.get("convert", "now")
    if value not in ("now", "later"):
        raise UsageError(f"--option convert={value}: unknown value", "Use now or later.")
    unlike = {
        "--keep-args": request.keep_args,
        "--args none": request.no_args,
        "following running processes": request.follow is not None,
    }
    what = next((name for name, given in unlike.items() if given), "")
    if value == "later" and what:
        raise UsageError(
            f"--option convert=later cannot be combined with {what}", "Omit one of them."
        )
    return value == "later"


def leave_spool(
    request: RecordRequest, writer: BundleWriter, manifest: Manifest, end: dict[str, Any]
) -> dict[str, int]:
    """Redact the spool and complete the manifest; return the losses by kind."""
    spool = writer.path.inside / SPOOL_DIR
    try:
        manifest.redacted_args += redact_spool(spool)
        lost = lost_in_spool(spool)
        if end.get("outlived"):
            lost["outliving_processes"] = int(end["outlived"])
    except OSError as error:
        what = f"{request.output / SPOOL_DIR}: {error.strerror}"
        raise BundleError(what, "Free some space, then read the bundle.") from None
    manifest.notes.append(NOTE)
    manifest.complete = bool(end)
    writer.write_manifest(manifest)
    return lost


_PR_SET_CHILD_SUBREAPER = 36
# options of the request that are passed to the loader
_LOADER_OPTIONS = ("ring", "extents", "processes", "linger")


def record(request: RecordRequest) -> RecordResult:
    """Run the command and write the bundle; the spool is kept if its conversion fails.

    Raises CommandError, BundleError, CollectorError before the command starts. Later problems
    become notes or messages, and the command's own status is returned.
    """
    command: tuple[str, ...] = ()
    later = keeps_spool(request)
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
    ended = _run_below_loader(_loader_command(request, spool, command), request, writer, spool)
    manifest.ended_ns = time.time_ns()
    manifest.exit_status = ended.status if request.follow is None else None
    losses: dict[str, int] = {}
    with report_failures(f"The recording is kept in {request.output / SPOOL_DIR}."):
        end = _read_json(spool / "end.json")
        manifest.notes = []
        if request.follow is not None:
            manifest.notes = follow_notes(request.follow, int(end.get("outlived", 0)))
        finish = leave_spool if later else _convert
        losses = finish(request, writer, manifest, end)
    return RecordResult(ended.status, ended.signal, losses, writer.path)


def _loader_command(request: RecordRequest, spool: Path, command: tuple[str, ...]) -> list[str]:
    chosen = [f"--{k}={v}" for k, v in request.options.items() if k in _LOADER_OPTIONS]
    if request.follow is not None:
        return [str(LOADER), "-o", str(spool), *chosen, *follow_arguments(request.follow)]
    return [str(LOADER), "-o", str(spool), *chosen, "--", *command]


def _run_below_loader(
    argv: list[str], request: RecordRequest, writer: BundleWriter, spool: Path
) -> Ended:
    """Run the loader and below it the command, which still ends properly if the loader dies."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        if request.follow is not None:
            ended = run_child(argv, child_environment(request))
            begun = (spool / "start.json").exists()
        else:
            ended, begun = _run_command(argv, request)
        if not begun:
            writer.discard()
            raise NotBegunError(
                "the eBPF tracer could not start; nothing was "
                + ("run" if request.follow is None else "recorded"),
                "See the message above and `tracehint doctor`; or use --collector strace.",
            )
        return ended
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _run_command(argv: list[str], request: RecordRequest) -> tuple[Ended, bool]:
    """Return the command's result, and whether it began. The loader reports both through a pipe:
    changes to the bundle's files meanwhile cannot affect the exit code."""
    reader, writer = os.pipe()
    environment = child_environment(request)
    try:
        os.set_inheritable(writer, True)
        try:
            with environment_file(environment) as more:
                # options precede the command
                with_pipe = [*argv[:3], "--ready", str(writer), *more, *argv[3:]]
                loader = run_child(with_pipe, environment)
        finally:
            os.close(writer)
        words = os.read(reader, 4096).split()
    finally:
        os.close(reader)
    if len(words) == 3:  # pid; status, signal
        return Ended(int(words[1]), int(words[2]) or None), True
    return (_wait_for_orphan(int(words[0])) if words else None) or loader, bool(words)


@contextmanager
def environment_file(environment: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield an option for a loader with file capabilities: libc removes part of its environment."""
    if not _file_capabilities():
        yield []
        return
    with os.fdopen(os.memfd_create("environment"), "wb") as file:
        os.set_inheritable(file.fileno(), True)
        rows = (os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
        file.writelines(rows)
        file.flush()
        yield ["--environment", str(file.fileno())]


def _wait_for_orphan(pid: int) -> Ended | None:
    """Wait for the command, which is our child since the loader was killed; None if it is not."""
    print("tracehint: the recorder was killed; the command continues", file=sys.stderr)
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return None
    code = os.waitstatus_to_exitcode(status)
    return Ended(code) if code >= 0 else Ended(128 - code, -code)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _convert(
    request: RecordRequest, writer: BundleWriter, manifest: Manifest, end: dict[str, Any]
) -> dict[str, int]:
    """Convert the spool to Parquet; return the losses by kind."""
    skip_pandas()
    from tracehint.schemas.spool.convert import convert_spool

    tables = convert_spool(writer.path.inside, manifest)
    if request.follow is not None and request.follow.missed:
        missed = Path(request.follow.missed)
        add_missed(tables, manifest.notes, manifest.hosts[0].name, missed, no_args=request.no_args)
    manifest.complete = bool(end)
    write_bundle(writer, tables, manifest)
    shutil.rmtree(writer.path.inside / SPOOL_DIR, ignore_errors=True)
    return losses_of(tables["losses"])


BTF = Path("/sys/kernel/btf/vmlinux")
COST = "about 1.1 times the CPU time on small I/O, not measurable for computation"

_CAP_SYS_ADMIN, _CAP_PERFMON, _CAP_BPF = 21, 38, 39
_REBUILD = (
    "Run `make tracer` in the source tree, or install the wheel again. "
    "Until then: --collector strace."
)
_SETCAP = f"setcap cap_bpf,cap_perfmon=ep {LOADER} && chmod 750 {LOADER}"


class EbpfCollector:
    """Records with BTF raw tracepoints through the loader `tracehint-rec`."""

    name = "ebpf"
    blind_to = BLIND

    def check(self) -> Availability:
        """Test each condition; the last test loads the programs."""
        return _check_all(_check_host, _check_loader, _check_version, _check_btf, _test_load)

    def conditions(self) -> Availability:
        """Test without a trial load (0.07 s CPU); if loading fails, `record` raises
        NotBegunError."""
        return _check_all(_check_host, _check_loader, _check_version, _check_btf, _check_privilege)

    def record(self, request: RecordRequest) -> RecordResult:
        """Run the command below the loader and write the bundle."""
        return record(request)


def _check_all(*tests: Callable[[], tuple[str, str]]) -> Availability:
    reason = ""
    for test in tests:
        reason, remedy = test()
        if remedy:
            return Availability(False, reason, remedy, BLIND, COST, broken=test is _check_version)
    return Availability(True, reason, "", BLIND, COST)


def _check_host() -> tuple[str, str]:
    machine = f"{platform.machine()} {platform.system()}"
    if machine not in ("x86_64 Linux", "aarch64 Linux"):
        return (
            f"eBPF recording supports Linux on x86-64 and aarch64, this is {machine}",
            "Use --collector strace.",
        )
    return machine, ""


def _check_loader() -> tuple[str, str]:
    if not LOADER.is_file():
        return (
            _read_build_note(),
            "Run `make tracer` in the source tree, or install a wheel of tracehint.",
        )
    if not os.access(LOADER, os.X_OK):
        return (
            f"{LOADER} is not executable by this user",
            "Ask for membership in its group, or for permission to execute it.",
        )
    return "the tracer is installed", ""


def _read_build_note() -> str:
    """Return the reason why the build left the tracer out, as noted then."""
    try:
        return NOT_BUILT.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return f"the tracer is not built ({LOADER.name} is missing)"


def _check_version() -> tuple[str, str]:
    """Test whether the loader's spool version matches; an older loader has no --version."""
    done = _ask_loader("--version", seconds=5)
    if isinstance(done, str):
        return done, _REBUILD
    answer = done.stdout.strip() if done.returncode == 0 else ""
    if not answer:
        return "the tracer is older than this program", _REBUILD
    if answer != str(VERSION):
        return f"the tracer writes version {answer:.20}, this program reads {VERSION}", _REBUILD
    return "the tracer's version matches", ""


def _ask_loader(question: str, seconds: float) -> subprocess.CompletedProcess[str] | str:
    """Run the loader with an option; return its result, or the reason why it does not run."""
    try:
        return subprocess.run(
            [LOADER, question],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the tracer does not run: {error}"


def _check_btf() -> tuple[str, str]:
    if not BTF.exists():
        return (
            f"the kernel has no type information ({BTF} is missing)",
            "Boot a kernel built with CONFIG_DEBUG_INFO_BTF=y (all current distributions do).",
        )
    return "the kernel has type information", ""


def may_trace() -> bool:
    """Whether this process or the loader has the capabilities."""
    return _includes_tracing(effective_capabilities()) or _includes_tracing(_file_capabilities())


def _includes_tracing(caps: int) -> bool:
    return bool(caps >> _CAP_SYS_ADMIN & 1) or all(caps >> c & 1 for c in (_CAP_BPF, _CAP_PERFMON))


def effective_capabilities() -> int:
    """Return this process's effective capabilities, one bit per capability."""
    return int(process_status().get("CapEff", ["0"])[0], 16)


def _file_capabilities() -> int:
    """Return the permitted set of the loader's file capabilities (attribute versions 2 and 3)."""
    try:
        value = os.getxattr(LOADER, "security.capability")
    except OSError:
        return 0
    if len(value) < 20:
        return 0
    low, high = value[4:8], value[12:16]
    return int.from_bytes(low, "little") | int.from_bytes(high, "little") << 32


def _check_privilege() -> tuple[str, str]:
    if may_trace():
        return "this process may load BPF programs", ""
    return (
        "loading BPF programs needs CAP_BPF and CAP_PERFMON",
        f"As root, once: {_SETCAP}  (or run as root)",
    )


@functools.cache
def _test_load() -> tuple[str, str]:
    done = _ask_loader("--check", seconds=20)
    if isinstance(done, str):
        return done, _REBUILD
    if done.returncode == 0:
        return "the programs load and attach", ""
    if not may_trace():
        return _check_privilege()
    first = done.stderr.strip().splitlines()[0] if done.stderr.strip() else "no message"
    return (
        f"the kernel rejects the programs: {first.removeprefix('tracehint-rec: ')}",
        "Use --collector preload or strace. In a container: --cap-add=BPF,PERFMON and a seccomp "
        "profile that allows bpf(2).",
    )
