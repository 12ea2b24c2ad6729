"""What `bench_record` runs: the workloads, and each of them below each recorder."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LOADER = ROOT / "collectors" / "ebpf" / "bin" / "tracehint-rec"
# one event per call, or a process stopped at each: one round of these is enough when in a hurry
COSTLY = ("strace", "bpftrace", "one event per call", "DFTracer")
BPFTRACE = (
    "tracepoint:syscalls:sys_exit_read,tracepoint:syscalls:sys_exit_write "
    '{ printf("%d %d\\n", pid, args->ret); }'
)
Recorder = Callable[[Path, tuple[str, ...]], list[str]]  # the folder of its output, the command


@dataclass
class Result:
    """One recorder on one workload."""

    cpu: list[float] = field(default_factory=list)  # seconds
    wall: list[float] = field(default_factory=list)
    per_call: list[float] = field(default_factory=list)  # ns, by the workload itself
    trace_bytes: int = 0


@dataclass(frozen=True)
class Workload:
    """What is run, and how often it is called inside."""

    name: str
    command: tuple[str, ...]
    calls: int = 0
    per_call: bool = False
    slow: bool = True  # also under recorders that take 20 times as long


class Bench:
    """Compiled peers and a work directory."""

    def __init__(self, work: Path, *, quick: bool = False) -> None:
        self.work = work
        self.quick = quick
        self.calls = work / "calls"
        _cc(HERE / "peers" / "calls.c", self.calls)
        self.recorders: dict[str, Recorder] = {
            "native": lambda _out, command: list(command),
            "tracehint": lambda out, command: [str(LOADER), "-o", str(out), "--", *command],
        }
        self.missing: list[str] = []
        self._peers()
        with (work / "data").open("wb") as stream:
            for _ in range(1024):
                stream.write(b"\1" * (1 << 20))

    def _peers(self) -> None:
        """The peers that are installed; the others are in `missing`."""
        for name, made in (
            ("one event per call", self._one_event()),
            ("strace", _strace()),
            ("bpftrace", _bpftrace()),
            ("DFTracer", _dftracer()),
        ):
            if isinstance(made, str):
                self.missing.append(f"{name}: {made}")
            else:
                self.recorders[name] = made

    def _one_event(self) -> Recorder | str:
        event, program = self.work / "event.bpf.o", self.work / "event"
        flags = ["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-D__TARGET_ARCH_x86"]
        words = ["clang", *flags, "-c", HERE / "peers" / "event.bpf.c", "-o", event]
        try:
            subprocess.run(words, check=True, capture_output=True)
            _cc(HERE / "peers" / "event.c", program, "-lbpf", "-lelf", "-lz")
        except (OSError, subprocess.CalledProcessError):
            return "clang or libbpf-dev is not there"
        return lambda out, command: [str(program), str(event), str(out / "events"), *command]

    def once(self, recorder: str, workload: Workload, result: Result) -> None:
        """Run it once and add the measures."""
        with tempfile.TemporaryDirectory(dir=self.work) as text:
            out = Path(text)
            argv = self.recorders[recorder](out, workload.command)
            begin = time.monotonic()
            process = subprocess.Popen(
                argv, cwd=self.work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            assert process.stderr is not None
            text_err = process.stderr.read().decode(errors="replace")
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{recorder}: {workload.name}: {text_err}")
            result.wall.append(time.monotonic() - begin)
            result.cpu.append(usage.ru_utime + usage.ru_stime)
            if workload.per_call:
                result.per_call.append(float(text_err.split()[-1]))
            result.trace_bytes = sum(p.stat().st_size for p in out.rglob("*") if p.is_file())


def _script(out: Path, command: tuple[str, ...]) -> Path:
    """The command as a file: bpftrace -c knows no quotes and no search path."""
    path = out / "run.sh"
    path.write_text(f"exec {shlex.join(command)}\n")
    return path


def _strace() -> Recorder | str:
    if not shutil.which("strace"):
        return "not installed"
    calls = "trace=open,openat,creat,close,read,write,pread64,pwrite64,readv,writev"
    words = ["strace", "-f", "--seccomp-bpf", "-ttt", "-e", calls, "-o"]
    return lambda out, command: [*words, str(out / "log"), *command]


def _bpftrace() -> Recorder | str:
    if not shutil.which("bpftrace") or not Path("/sys/kernel/tracing/events").is_dir():
        return "not installed, or no tracefs"
    words = ["bpftrace", "-q", "-e", BPFTRACE]
    return lambda out, command: [
        *words,
        "-o",
        str(out / "log"),
        "-c",
        f"/bin/sh {_script(out, command)}",
    ]


def _dftracer() -> Recorder | str:
    """With the preload library of the PyPI package, of this Python or of the folder $DFTRACER."""
    spec = importlib.util.find_spec("dftracer")
    places = [os.environ.get("DFTRACER"), *((spec and spec.submodule_search_locations) or ())]
    found = (
        p for place in filter(None, places) for p in Path(place).rglob("libdftracer_preload.so")
    )
    preload = next(found, None)
    if preload is None:
        return "not installed (pip install dftracer; $DFTRACER names it)"
    words = ["env", f"LD_PRELOAD={preload}", "DFTRACER_ENABLE=1", "DFTRACER_INIT=PRELOAD"]
    words.append("DFTRACER_DATA_DIR=all")
    return lambda out, command: [*words, f"DFTRACER_LOG_FILE={out / 'log'}", *command]


def _cc(source: Path, program: Path, *libraries: str) -> None:
    subprocess.run(["cc", "-O2", "-o", program, source, *libraries], check=True)


def workloads(bench: Bench) -> list[Workload]:
    """The table's rows."""
    many = 200_000 if bench.quick else 1_000_000
    single = "500000" if bench.quick else "2000000"
    calls = str(bench.calls)
    source = str(HERE / "peers" / "calls.c")
    return [
        Workload("true", ("true",)),
        Workload("getppid", (calls, "getppid", str(many)), many, per_call=True),
        Workload("read 1 B", (calls, "read", str(many)), many, per_call=True),
        Workload("write 1 B", (calls, "write", str(many)), many, per_call=True),
        Workload("random pread 4 KiB", (calls, "random", str(many // 5)), many // 5, per_call=True),
        Workload("open + close", (calls, "open", str(many // 5)), many // 5, per_call=True),
        Workload("dd bs=4k, 1 GiB", ("dd", "if=data", "of=/dev/null", "bs=4k", "status=none")),
        Workload(
            f"dd bs=1, {int(single) / 1e6:g} M",
            ("dd", "if=data", "of=/dev/null", "bs=1", f"count={single}", "status=none"),
            slow=False,
        ),
        Workload("500 processes x 20 files", (calls, "processes", "500")),
        Workload(
            "compile C",
            ("sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do cc -O2 -c {source} -o o.o; done"),
        ),
    ]
