"""Recording with bpftrace: attach the probes, run the command, translate the output."""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.collectors import hostinfo
from tracehint.collectors.base import RecordRequest, RecordResult
from tracehint.collectors.begin import begin, child_environment, new_manifest
from tracehint.collectors.blind_spots import BPFTRACE_BLIND
from tracehint.collectors.bpftrace import announce
from tracehint.collectors.run import report_failures, run_child, runnable
from tracehint.collectors.strace.lexer import Call, LexStats
from tracehint.errors import BundleError, CollectorError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import RAW_DIR
from tracehint.schemas.writer import BundleWriter

if TYPE_CHECKING:
    import pyarrow as pa


MAX_TEXT = 199  # bytes of a path or an argument that bpftrace can print
AT_FDCWD = 0xFFFFFF9C
_LOST = re.compile(rb"Lost (\d+) events")
_FLAGS = {
    bit: name.encode()
    for name, bit in vars(os).items()
    if name
    in (
        "O_WRONLY",
        "O_RDWR",
        "O_CREAT",
        "O_EXCL",
        "O_TRUNC",
        "O_APPEND",
        "O_CLOEXEC",
        "O_DIRECTORY",
        "O_DIRECT",
        "O_PATH",
        "O_SYNC",
    )
}
_TMPFILE = 0o20000000
_CLONE = {
    0x100: b"CLONE_VM",
    0x200: b"CLONE_FS",
    0x400: b"CLONE_FILES",
    0x4000: b"CLONE_VFORK",
    0x10000: b"CLONE_THREAD",
}
_F_DUPFD, _F_DUPFD_CLOEXEC = 0, 1030
# system call number -> name and kinds of arguments: d descriptor, n number, p path, f open flags, o
# offset in memory; see _format_argument for the others
CALLS: dict[int, tuple[bytes, str]] = {
    0: (b"read", "dnn"), 1: (b"write", "dnn"), 2: (b"open", "pfn"), 3: (b"close", "d"),
    8: (b"lseek", "dnw"), 9: (b"mmap", "nnPMdn"), 17: (b"pread64", "dnnn"),
    18: (b"pwrite64", "dnnn"), 19: (b"readv", "dnn"), 20: (b"writev", "dnn"), 22: (b"pipe", "e"),
    32: (b"dup", "d"), 33: (b"dup2", "dd"), 40: (b"sendfile", "ddon"), 72: (b"fcntl", "dcn"),
    76: (b"truncate", "pn"), 77: (b"ftruncate", "dn"), 80: (b"chdir", "p"), 81: (b"fchdir", "d"),
    82: (b"rename", "pp"), 83: (b"mkdir", "pn"), 84: (b"rmdir", "p"), 85: (b"creat", "pn"),
    86: (b"link", "pp"), 87: (b"unlink", "p"), 88: (b"symlink", "pp"), 257: (b"openat", "dpfn"),
    258: (b"mkdirat", "dpn"), 263: (b"unlinkat", "dpu"), 264: (b"renameat", "dpdp"),
    161: (b"chroot", "p"), 265: (b"linkat", "dpdpn"), 275: (b"splice", "dodonn"),
    25: (b"mremap", "nnnnn"), 285: (b"fallocate", "dFnn"),
    292: (b"dup3", "ddf"), 293: (b"pipe2", "ef"), 295: (b"preadv", "dnnn"),
    296: (b"pwritev", "dnnn"), 316: (b"renameat2", "dpdpx"), 326: (b"copy_file_range", "dodonn"),
    327: (b"preadv2", "dnnsnn"), 328: (b"pwritev2", "dnnsnn"), 436: (b"close_range", "nnn"),
    437: (b"openat2", "dphn"),
}  # fmt: skip  # a table
UNSEEN = {209: "io_submit", 426: "io_uring"}
_FALLOC_MODES = {
    1: b"KEEP_SIZE",
    2: b"PUNCH_HOLE",
    8: b"COLLAPSE_RANGE",
    16: b"ZERO_RANGE",
    32: b"INSERT_RANGE",
}


@dataclass
class Log:
    """Parsed output of bpftrace: calls in order, and counts of missing data."""

    calls: list[Call] = field(default_factory=list)
    lost: int = 0  # events dropped because bpftrace's buffers were full
    bad: int = 0  # lines that could not be parsed
    cut: int = 0  # paths that are longer than bpftrace can print
    unseen: dict[str, int] = field(default_factory=dict)


def lost_in(log: Log) -> dict[tuple[str, str], int]:
    """Return the losses that the output reports: (kind, detail) -> count."""
    return {
        ("lifecycle_records", "bpftrace's buffers were full"): log.lost,
        ("path_cut", "longer than 199 bytes"): log.cut,
        **{("unknown_calls", name): n for name, n in log.unseen.items()},
    }


def translate(lines: Iterable[bytes], offset_ns: int) -> Log:
    """Return all calls in chronological order; `offset_ns` is added to each time."""
    log = Log()
    rows: list[tuple[int, list[bytes]]] = []
    texts: dict[tuple[bytes, bytes, bytes], bytes] = {}
    memory: dict[tuple[bytes, bytes], tuple[int, int]] = {}
    argv: dict[bytes, list[tuple[int, bytes]]] = {}
    for line in lines:
        kind, _, rest = line.rstrip(b"\n").partition(b" ")
        try:
            if kind == b"P":
                tid, end, index, text = rest.split(b" ", 3)
                log.cut += len(text) >= MAX_TEXT
                texts[tid, end, index] = text
            elif kind == b"O":
                tid, end, first, second = rest.split(b" ")
                memory[tid, end] = int(first), int(second)
            elif kind == b"A":
                tid, at, _, text = rest.split(b" ", 3)
                argv.setdefault(tid, []).append((int(at), text))
            elif kind in (b"S", b"F", b"X", b"D"):
                part = rest.split(b" ", 2 if kind == b"X" else -1)
                # a descriptor number is free as soon as close begins
                when = part[2 if part[4] == b"3" else 3] if kind == b"S" else part[1]
                rows.append((int(when), [kind, *part]))
            elif found := _LOST.search(line):
                log.lost += int(found[1])
            elif line.strip() and kind not in (b"B", b"ready"):
                log.bad += 1
        except (ValueError, IndexError):
            log.bad += 1
    rows.sort(key=lambda row: row[0])
    _add_calls(log, rows, offset_ns, texts, memory, argv)
    return log


def _add_calls(
    log: Log,
    rows: list[tuple[int, list[bytes]]],
    offset_ns: int,
    texts: dict[tuple[bytes, bytes, bytes], bytes],
    memory: dict[tuple[bytes, bytes], tuple[int, int]],
    argv: dict[bytes, list[tuple[int, bytes]]],
) -> None:
    """Append the calls of the rows, in order; count rows that cannot be parsed."""
    for position, (at_ns, parts) in enumerate(rows, 1):
        try:
            call = _parse_row(log, parts, at_ns + offset_ns, offset_ns, texts, memory, argv)
        except (ValueError, IndexError, KeyError):
            log.bad += 1
            continue
        if call is not None:
            log.calls.append(call._replace(line=position))


def _parse_row(
    log: Log,
    row: list[bytes],
    now: int,
    offset_ns: int,
    texts: dict[tuple[bytes, bytes, bytes], bytes],
    memory: dict[tuple[bytes, bytes], tuple[int, int]],
    argv: dict[bytes, list[tuple[int, bytes]]],
) -> Call | None:
    kind, tid = row[0], row[1]
    if kind == b"F":
        flags = b"|".join(v for k, v in _CLONE.items() if int(row[4], 16) & k) or b"SIGCHLD"
        return Call("call", int(tid), now, now, b"clone", b"flags=" + flags, row[3])
    if kind == b"D":
        status = int(row[3])
        dead = status & 0x7F
        name = b"killed by" if dead else b"exited with"
        result = b"SIG_%d" % dead if dead else b"%d" % (status >> 8)
        return Call("exit", int(tid), now, now, name, b"", result)
    if kind == b"X":
        given = [a for a in argv.get(tid, []) if a[0] + offset_ns <= now]
        last = max((at for at, _ in given), default=0)
        words = b", ".join(_quote(text) for at, text in given if at == last)
        path = row[3]
        return Call(
            "call", int(tid), now, now, b"execve", _quote(path) + b", [" + words + b"]", b"0"
        )
    return _parse_return(log, row, offset_ns, texts, memory)


def _parse_return(
    log: Log,
    row: list[bytes],
    offset_ns: int,
    texts: dict[tuple[bytes, bytes, bytes], bytes],
    memory: dict[tuple[bytes, bytes], tuple[int, int]],
) -> Call | None:
    _, _, tid, start, end, number, result, *raw = row
    if int(number) in UNSEEN and int(result) > 0:
        name = UNSEEN[int(number)]
        log.unseen[name] = log.unseen.get(name, 0) + 1
        return None
    name_of, kinds = CALLS[int(number)]
    given = [int(a, 16) for a in raw]
    pair = memory.get((tid, end), (0, 0))
    args: list[bytes] = []
    paths = offsets = 0
    for kind, value in zip(kinds, given, strict=False):
        if kind == "p":
            args.append(_quote(texts[tid, end, b"%d" % paths]))
            paths += 1
        elif kind == "o":  # the kernel has already advanced it
            at = pair[offsets] - int(result)
            args.append(b"[%d]" % at if value else b"NULL")
            offsets += 1
        elif kind == "h":
            args.append(_format_argument("f", pair[0]))
        elif kind == "e":
            args.append(b"[%d, %d]" % pair)
        else:
            args.append(_format_argument(kind, value))
    text = b"-1 ENOENT" if result == b"-2" else result
    t_ns, end_ns = int(start) + offset_ns, int(end) + offset_ns
    return Call("call", int(tid), t_ns, end_ns, name_of, b", ".join(args), text)


def _format_argument(kind: str, value: int) -> bytes:
    """Return one argument as strace prints it."""
    if kind == "d":
        low = value & 0xFFFFFFFF
        return b"AT_FDCWD" if low == AT_FDCWD else b"%d" % (low - (low >> 31 << 32))
    if kind == "f":
        names = [name for bit, name in _FLAGS.items() if value & bit == bit]
        if value & _TMPFILE:
            names.append(b"O_TMPFILE")
        return b"|".join(names) or b"O_RDONLY"
    if kind == "c":
        return {_F_DUPFD: b"F_DUPFD", _F_DUPFD_CLOEXEC: b"F_DUPFD_CLOEXEC"}.get(
            value, b"%d" % value
        )
    if kind == "w":
        return b"SEEK_END" if value == 2 else b"%d" % value
    if kind == "P":
        return (b"PROT_READ|" if value & 5 else b"") + (b"PROT_WRITE" if value & 2 else b"0")
    if kind == "M":
        return (b"MAP_SHARED" if value & 3 in (1, 3) else b"MAP_PRIVATE") + (
            b"|MAP_ANONYMOUS" if value & 0x20 else b""
        )
    if kind == "F":
        return b"|".join(b"FALLOC_FL_" + v for k, v in _FALLOC_MODES.items() if value & k) or b"0"
    if kind == "u":
        return b"AT_REMOVEDIR" if value & 0x200 else b"0"
    if kind == "x":
        return b"RENAME_EXCHANGE" if value & 2 else b"0"
    if kind == "s":
        return b"-1" if value == (1 << 64) - 1 else b"%d" % value
    return b"%d" % (value if value < 1 << 63 else value - (1 << 64))


def _quote(text: bytes) -> bytes:
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


LOG_NAME = "bpftrace.log"


def recover(root: Path, manifest: Manifest) -> tuple[dict[str, pa.Table], list[str]]:
    """Return tables, no problems; complete the manifest. Raises BundleError without a log."""
    from tracehint.collectors.strace.convert import tables_of

    clock = manifest.hosts[0].clock if manifest.hosts else {}
    log = root / RAW_DIR / LOG_NAME
    try:
        with log.open("rb") as stream:
            found = translate(stream, clock.get("real_ns", 0) - clock.get("boot_ns", 0))
    except OSError as error:
        raise BundleError(f"{log}: {error.strerror}", "Record the run again.") from None
    stats = LexStats(lines=len(found.calls) + found.bad, bad=found.bad)
    return tables_of(manifest, found.calls, stats, lost_in(found)), []


SCRIPT = Path(__file__).parent / "tracehint.bt"
ATTACH_S = 30.0
DRAIN_S = 30  # seconds after the command to print events that the kernel still holds
_ENVIRONMENT = {
    "BPFTRACE_STRLEN": "200",
    "BPFTRACE_MAP_KEYS_MAX": "65536",
    "BPFTRACE_PERF_RB_PAGES": "1024",
}
_PRCTL = 157
_PR_SET_PDEATHSIG = 1


def record(request: RecordRequest) -> RecordResult:
    """Run the command and write the bundle; the log is kept if its translation fails.

    Raises CommandError, BundleError, CollectorError before the command starts.
    """
    from tracehint.collectors.strace.live import inherited_descriptors

    command = runnable(request.command)
    manifest = new_manifest(
        request,
        "bpftrace",
        blind_to=BPFTRACE_BLIND,
        unfinished="The recorder was stopped before it translated bpftrace's output.",
    )
    writer, log = begin(request, manifest, RAW_DIR, LOG_NAME)
    cookie = 0x40000000 + secrets.randbelow(0x3FFFFFFE)
    facts = inherited_descriptors()
    tracer = _attach(writer, log, cookie)
    try:
        launcher = [sys.executable, "-I", "-S", announce.__file__, str(cookie), *command]
        ended = run_child(launcher, child_environment(request))
        manifest.ended_ns = time.time_ns()
        drained = _wait_for_output(tracer, log, cookie)
    finally:
        tracer.send_signal(signal.SIGINT)
        try:
            tracer.wait(10)
        except subprocess.TimeoutExpired:
            tracer.kill()
            tracer.wait()
    manifest.exit_status = ended.status
    losses: dict[str, int] = {}
    with report_failures(f"bpftrace's output is kept in {request.output / RAW_DIR}."):
        losses = _convert(writer, manifest, log, facts, drained)
    return RecordResult(ended.status, ended.signal, losses, writer.path)


def _attach(writer: BundleWriter, log: Path, cookie: int) -> subprocess.Popen[bytes]:
    """Start bpftrace with all probes attached. Raises CollectorError; then nothing was run."""
    errors = log.with_suffix(".err")
    libc = ctypes.CDLL(None)

    def end_with_me() -> None:
        """End bpftrace with the recorder: probes on every system call must not outlive it."""
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)

    with log.open("wb") as out, errors.open("wb") as err:
        tracer = subprocess.Popen(
            ["bpftrace", "-q", "-B", "line", str(SCRIPT), str(cookie)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            env={**os.environ, **_ENVIRONMENT},
            preexec_fn=end_with_me,
        )
    end = time.monotonic() + ATTACH_S
    while time.monotonic() < end and tracer.poll() is None:
        _request_mark(cookie, 0)
        time.sleep(0.05)
        text = log.read_bytes()
        if b"ready first\n" in text and b"ready last 0\n" in text:
            return tracer
    tracer.kill()
    tracer.wait()
    messages = errors.read_text(errors="replace").strip().splitlines()
    writer.discard()
    raise CollectorError(
        f"bpftrace could not attach; nothing was run: {messages[-1] if messages else 'no message'}",
        "See the message; or use --collector ebpf or strace.",
    )


def _request_mark(cookie: int, number: int) -> None:
    """Make bpftrace print `ready last NUMBER` at this point of this processor's queue."""
    ctypes.CDLL(None).syscall(
        ctypes.c_long(_PRCTL), ctypes.c_ulong(cookie + 1), ctypes.c_ulong(number), 0, 0, 0
    )


def _wait_for_output(tracer: subprocess.Popen[bytes], log: Path, cookie: int) -> bool:
    """Return whether bpftrace has printed all events: when interrupted, it drops the rest.

    The kernel has one queue per processor, so each gets a mark, repeated after a second because a
    queue may have been full.
    """
    allowed = os.sched_getaffinity(0)
    missing = set(range(1, os.sysconf("SC_NPROCESSORS_CONF") + 1))
    with log.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        for _ in range(DRAIN_S):
            for number in sorted(missing):
                try:
                    os.sched_setaffinity(0, {number - 1})
                    _request_mark(cookie, number)
                except OSError:  # offline, or not allowed for us and thus for the command
                    missing.discard(number)
            os.sched_setaffinity(0, allowed)
            end = time.monotonic() + 1
            while missing and time.monotonic() < end and tracer.poll() is None:
                line = stream.readline()
                if line.startswith(b"ready last ") and line.endswith(b"\n"):
                    missing.discard(int(line.split()[2]))
                elif not line.endswith(b"\n"):  # no line yet, or an incomplete one
                    stream.seek(-len(line), os.SEEK_CUR)
                    time.sleep(0.02)
            if not missing or tracer.poll() is not None:
                break
    return not missing


def _convert(
    writer: BundleWriter,
    manifest: Manifest,
    log: Path,
    facts: dict[int, tuple[bytes, int, int]],
    drained: bool,
) -> dict[str, int]:
    """Convert the log to the bundle's tables; return the losses by kind."""
    from tracehint.collectors.strace.convert import convert_calls
    from tracehint.collectors.strace.lexer import LexStats

    now = hostinfo.clock()  # bpftrace's times are since boot
    with log.open("rb") as stream:
        found = translate(stream, now["real_ns"] - now["boot_ns"])
    stats = LexStats(bad=found.bad)
    losses = lost_in(found)
    losses["lifecycle_records", "bpftrace did not print all in time"] = int(not drained)
    return convert_calls(
        writer, manifest, log, found.calls, stats, facts=facts, notes=[], losses=losses
    )
