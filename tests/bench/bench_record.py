"""What recording costs, side by side in one run: alternating rounds, medians.

    python tests/bench/bench_record.py [--rounds 5] [--quick] [-o docs/collectors/ebpf-cost.md]

Columns: native, tracehint (eBPF), one event per call (tests/bench/peers, the
usual design of eBPF tools), strace --seccomp-bpf, bpftrace, DFTracer (a preloaded
library); one that is not installed is left out and named. CPU is user + system time of the command
with the recorder's own process, less what recording `true` costs (that is
stated apart as load and attach).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LOADER = ROOT / "collectors" / "ebpf" / "bin" / "tracehint-rec"
BPFTRACE = (
    "tracepoint:syscalls:sys_exit_read,tracepoint:syscalls:sys_exit_write "
    '{ printf("%d %d\\n", pid, args->ret); }'
)


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

    def __init__(self, work: Path) -> None:
        self.work = work
        self.calls = work / "calls"
        _cc(HERE / "peers" / "calls.c", self.calls)
        self.recorders: dict[str, Callable[[Path, tuple[str, ...]], list[str]]] = {
            "native": lambda _out, command: list(command),
            "tracehint": lambda out, command: [str(LOADER), "-o", str(out), "--", *command],
        }
        self.missing: list[str] = []
        self._peers()
        with (work / "data").open("wb") as stream:
            stream.truncate(1 << 30)
            for _ in range(1024):
                stream.write(b"\1" * (1 << 20))

    def _peers(self) -> None:
        event, program = self.work / "event.bpf.o", self.work / "event"
        try:
            subprocess.run(
                ["clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-c",
                 HERE / "peers" / "event.bpf.c", "-o", event, "-D__TARGET_ARCH_x86"],
                check=True, capture_output=True,
            )  # fmt: skip
            _cc(HERE / "peers" / "event.c", program, "-lbpf", "-lelf", "-lz")
            self.recorders["one event per call"] = lambda out, command: [
                str(program), str(event), str(out / "events"), *command
            ]  # fmt: skip
        except (OSError, subprocess.CalledProcessError):
            self.missing.append("one event per call: clang or libbpf-dev is not there")
        if shutil.which("strace"):
            self.recorders["strace"] = lambda out, command: [
                "strace", "-f", "--seccomp-bpf", "-ttt", "-e",
                "trace=open,openat,creat,close,read,write,pread64,pwrite64,readv,writev",
                "-o", str(out / "log"), *command,
            ]  # fmt: skip
        else:
            self.missing.append("strace: not installed")
        if shutil.which("bpftrace") and Path("/sys/kernel/tracing/events").is_dir():
            self.recorders["bpftrace"] = lambda out, command: [
                "bpftrace", "-q", "-o", str(out / "log"), "-e", BPFTRACE, "-c",
                f"/bin/sh {_script(out, command)}",
            ]  # fmt: skip
        else:
            self.missing.append("bpftrace: not installed, or no tracefs")
        preload = _dftracer()
        if preload is not None:
            self.recorders["DFTracer"] = lambda out, command: [
                "env", f"LD_PRELOAD={preload}", "DFTRACER_ENABLE=1", "DFTRACER_INIT=PRELOAD",
                "DFTRACER_DATA_DIR=all", f"DFTRACER_LOG_FILE={out / 'log'}", *command,
            ]  # fmt: skip
        else:
            self.missing.append(
                "DFTracer: not installed (pip install dftracer; $DFTRACER names it)"
            )

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


def _dftracer() -> Path | None:
    """The preload library of the PyPI package, of this Python or of the folder $DFTRACER."""
    spec = importlib.util.find_spec("dftracer")
    places = [os.environ.get("DFTRACER"), *((spec and spec.submodule_search_locations) or ())]
    for place in filter(None, places):
        for found in Path(place).rglob("libdftracer_preload.so"):
            return found
    return None


def _cc(source: Path, program: Path, *libraries: str) -> None:
    subprocess.run(["cc", "-O2", "-o", program, source, *libraries], check=True)


def workloads(bench: Bench, *, quick: bool) -> list[Workload]:
    """The table's rows."""
    many = 200_000 if quick else 1_000_000
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
        Workload("dd bs=1, 2 M", ("dd", "if=data", "of=/dev/null", "bs=1", "count=2000000",
                                  "status=none"), slow=False),
        Workload("500 processes x 20 files", (calls, "processes", "500")),
        Workload("compile C", ("sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do cc -O2 -c {source} "
                                           "-o o.o; done")),
    ]  # fmt: skip


def untraced(bench: Bench, rounds: int) -> tuple[float, float]:
    """getppid of a process that is not followed: ns without and with a recorder attached."""
    plain: list[float] = []
    attached: list[float] = []
    command = (str(bench.calls), "getppid", "1000000")
    for _ in range(rounds):
        plain.append(_own_count(command, bench.work))
        with tempfile.TemporaryDirectory(dir=bench.work) as out:
            recorder = subprocess.Popen([LOADER, "-o", out, "--", "sleep", "30"])
            time.sleep(0.5)
            attached.append(_own_count(command, bench.work))
            recorder.terminate()
            recorder.wait()
    return statistics.median(plain), statistics.median(attached)


def _own_count(command: tuple[str, ...], work: Path) -> float:
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=True)
    return float(done.stderr.split()[-1])


def load_time(bench: Bench, rounds: int) -> tuple[float, int]:
    """Seconds until the command runs, less those of a plain start; the loader's memory in KiB."""
    times: list[float] = []
    memory = 0
    for _ in range(max(rounds, 5)):
        with tempfile.TemporaryDirectory(dir=bench.work) as out:
            subprocess.run([LOADER, "-o", out, "--", "true"], check=True)
            end = json.loads((Path(out) / "end.json").read_bytes())
            times.append(end["load_ms"] / 1e3)
            memory = max(memory, end["max_rss_kb"])
    return statistics.median(times), memory


def trace_sizes(bench: Bench, *, quick: bool) -> str:
    """Bytes of the finished bundle per call, or per short process."""
    cells = []
    many = 100_000 if quick else 1_000_000
    for kind, count, unit in (
        ("read", many, "sequential read"), ("random", many // 5, "random 4 KiB read"),
        ("processes", 500, "short process with 20 files"),
    ):  # fmt: skip
        bundle = bench.work / f"{kind}.trace"
        subprocess.run(
            [sys.executable, "-m", "tracehint", "record", "--quiet", "--collector", "ebpf", "-o",
             bundle, "--", bench.calls, kind, str(count)],
            cwd=bench.work, stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        size = sum(p.stat().st_size for p in bundle.rglob("*") if p.is_file())
        cells.append(f"{size / count:.2g} per {unit}" if size < 10 * count else
                     f"{size / count:.0f} per {unit}")  # fmt: skip
    return "Bytes of trace: " + ", ".join(cells) + "."


def measure(bench: Bench, rounds: int, *, quick: bool) -> dict[str, dict[str, Result]]:
    """All recorders on all workloads, alternating."""
    table: dict[str, dict[str, Result]] = {}
    for workload in workloads(bench, quick=quick):
        row = table[workload.name] = {name: Result() for name in bench.recorders}
        for turn in range(rounds):
            for name, result in row.items():
                expensive = name in ("strace", "bpftrace")
                if expensive and (turn or not workload.slow):
                    continue  # once: it takes 20 times as long
                print(f"  {workload.name}: {name}", file=sys.stderr)
                bench.once(name, workload, result)
    return table


def render(bench: Bench, table: dict[str, dict[str, Result]], rounds: int) -> str:
    """The tables as Markdown."""
    names = list(bench.recorders)
    lines = ["| added CPU ns per call | native ns | " + " | ".join(names[1:]) + " |"]
    lines.append("|---" * (len(names) + 1) + "|")
    for workload, row in table.items():
        if not row["native"].per_call:
            continue
        base = statistics.median(row["native"].per_call)
        cells = [_added(row[n].per_call, base) for n in names[1:]]
        lines.append(f"| {workload} | {base:.0f} | " + " | ".join(cells) + " |")
    lines += ["", "| CPU ratio to native (wall) | native s | " + " | ".join(names[1:]) + " |"]
    lines.append("|---" * (len(names) + 1) + "|")
    start = {n: statistics.median(table["true"][n].cpu) for n in names}
    for workload, row in table.items():
        if row["native"].per_call or workload == "true":
            continue
        base = statistics.median(row["native"].cpu)
        cells = [_ratio(row["native"], row[n], start[n] - start["native"]) for n in names[1:]]
        lines.append(f"| {workload} | {base:.2f} | " + " | ".join(cells) + " |")
    lines += ["", f"Medians of {rounds} alternating rounds (strace and bpftrace: one round)."]
    lines += [f"Left out: {text}." for text in bench.missing]
    return "\n".join(lines)


def _added(values: list[float], base: float) -> str:
    return f"+{statistics.median(values) - base:.0f}" if values else "-"


def _ratio(native: Result, other: Result, start: float) -> str:
    if not other.cpu:
        return "-"
    cpu = (statistics.median(other.cpu) - start) / statistics.median(native.cpu)
    wall = statistics.median(other.wall) / statistics.median(native.wall)
    return f"{cpu:.2f} ({wall:.2f})"


HEAD = """# What recording costs

From `make bench-record` (`python -m tests.bench.bench_record --rounds 5 -o
docs/collectors/ebpf-cost.md`) on a two-core virtual machine with Linux 6.18 that had other work
to do at the same time: ratios and added CPU time are of use, wall times less so. The CPU time is
that of the command and the recorder together, less what recording `true` costs.

"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="fewer calls")
    parser.add_argument("-o", "--output", type=Path, help="also write the tables there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        bench = Bench(Path(text))
        table = measure(bench, options.rounds, quick=options.quick)
        plain, attached = untraced(bench, options.rounds)
        load, memory = load_time(bench, options.rounds)
        report = render(bench, table, options.rounds)
        sizes = trace_sizes(bench, quick=options.quick)
    report += (
        f"\n\nA process that is not followed, per system call while a recorder is attached: "
        f"+{attached - plain:.0f} ns (native {plain:.0f} ns).\n"
        f"Load and attach: {load * 1e3:.0f} ms. Loader's memory: {memory / 1024:.0f} MiB.\n"
        f"{sizes}\n"
    )
    print(report)
    if options.output:
        options.output.write_text(HEAD + report, encoding="utf-8")


if __name__ == "__main__":
    main()
