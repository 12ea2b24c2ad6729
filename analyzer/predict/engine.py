"""Run the engine, `tracehint-sim`, and read its answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracehint.analyzer.predict.machine import Machine
from tracehint.analyzer.predict.model import SPENT, Floats, Placement, SimulatedRun, Workload
from tracehint.analyzer.predict.request import scenario_bytes, workload_bytes
from tracehint.errors import InputError, MissingDependencyError

PROGRAM = "tracehint-sim"
# what an engine says that knows other arrays (engine/input.c)
_OTHER_VERSION = ("another array stands in its place", "is not of this program's form")
_HERE = Path(__file__).parent
ENOUGH = 20_000  # operations that are worth a process: fewer take less time than its start
_HEAD, _HOST, _TYPE, _TASK = 5, 6, 3 + len(SPENT), 5 + len(SPENT)


@dataclass(frozen=True)
class Scenario:
    """One run to simulate; `detail` asks for the tasks."""

    machine: Machine
    placement: Placement
    detail: bool = False


def find_program() -> Path:
    """The built engine: beside this package, beside the interpreter, or on the path.

    Raises MissingDependencyError.
    """
    places = [_HERE / "bin" / PROGRAM, Path(sys.executable).parent / PROGRAM]
    found = shutil.which(PROGRAM)
    places += [Path(found)] if found else []
    for place in places:
        if place.is_file():
            return place
    raise MissingDependencyError(
        f"{PROGRAM} is not built: predictions need it",
        "In a clone run `make tracer`; a wheel for this machine has it built in.",
    )


def simulate(work: Workload, scenarios: Sequence[Scenario], workers: int = 0) -> list[SimulatedRun]:
    """The outcome of each scenario, in order; `workers` processes at a time (0: one per core, and
    no more than have enough to do).

    Raises InputError for tasks that wait for each other, MissingDependencyError without engine.
    """
    program = find_program()
    workers = max(1, min(workers or _worth(work, len(scenarios)), len(scenarios)))
    with tempfile.TemporaryDirectory(prefix="tracehint-predict-") as folder:
        shared = Path(folder) / "workload"
        shared.write_bytes(workload_bytes(work))
        parts = [scenarios[i::workers] for i in range(workers)]

        def run(number: int) -> list[SimulatedRun]:
            return _run(program, shared, work, parts[number], Path(folder) / f"runs{number}")

        if workers == 1:
            return run(0)
        with ThreadPoolExecutor(workers) as pool:
            found = [iter(part) for part in pool.map(run, range(workers))]
        return [next(found[i % workers]) for i in range(len(scenarios))]


def _worth(work: Workload, scenarios: int) -> int:
    """How many processes simulate that many scenarios soonest."""
    operations = scenarios * (len(work.op_kind) + work.tasks)
    return min(os.cpu_count() or 1, operations // ENOUGH)


def _run(
    program: Path, shared: Path, work: Workload, scenarios: Sequence[Scenario], path: Path
) -> list[SimulatedRun]:
    with path.open("wb") as stream:
        for scenario in scenarios:
            stream.write(scenario_bytes(scenario.machine, scenario.placement, scenario.detail))
    done = subprocess.run([program, shared, path], capture_output=True, check=False)
    path.unlink()
    check_answer(done)
    answers = np.frombuffer(done.stdout)
    return list(_outcomes(answers, work, scenarios))


def check_answer(done: subprocess.CompletedProcess[bytes]) -> None:
    """Raises InputError where the engine failed; one of another version cannot read the files."""
    if not done.returncode:
        return
    said = done.stderr.decode("utf-8", "replace").strip()[-300:] or f"exit {done.returncode}"
    if any(sign in said for sign in _OTHER_VERSION):
        raise MissingDependencyError(
            f"{PROGRAM} is of another version than this program ({said})",
            "In a clone run `make tracer`; otherwise install tracehint again.",
        )
    raise InputError(
        f"the simulation failed: {said}",
        "Check the cluster file; with too little memory give a smaller run.",
    )


def _outcomes(
    numbers: Floats, work: Workload, scenarios: Sequence[Scenario]
) -> Iterator[SimulatedRun]:
    at = 0

    def take(rows: int, columns: int) -> Floats:
        nonlocal at
        found = numbers[at : at + rows * columns].reshape(rows, columns)
        at += rows * columns
        return found

    for scenario in scenarios:
        head = take(1, _HEAD)[0]
        hosts = take(len(scenario.machine.hosts), _HOST)
        types = take(len(work.type_names), _TYPE)
        tasks = take(work.tasks, _TASK) if scenario.detail else None
        if int(head[3]) != work.tasks:
            raise InputError(
                f"{work.tasks - int(head[3])} of {work.tasks} tasks wait for each other",
                "A run must be a graph without cycles: check the declared inputs and outputs.",
            )
        yield SimulatedRun(
            seconds=float(head[0]),
            network_bytes=float(head[1]),
            site_bytes=float(head[4]),
            metadata_operations=float(head[2]),
            hosts=hosts,
            types=types,
            tasks=tasks,
        )
