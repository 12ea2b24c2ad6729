"""Workflows on a small cluster, plain and in repeated `tracehint run`; `make bench-cluster`.

Five nodes behind links of 100 Mbit/s, real MooseFS and real Slurm; each workflow runs by its engine
in an allocation of all nodes, or on the head if it submits jobs. The programs need a few seconds
of processor time in total (Montage is projected by `mProjectPP`), so that the links decide although
all nodes share this machine's processors. Each round runs every setting once. Results are stored
in RESULTS and written from there to the page.

    python -m scripts.bench.bench_cluster --workflow blast --rounds 1
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.bench.cluster_workflows import WORKFLOWS, ClusterWorkflow
from scripts.bench.load import LOADED, Watch
from scripts.bench.page import into_page
from tests.support import slurm
from tests.support.hints import rule, save
from tests.support.needs import missing_for
from tests.support.patience import until
from tests.support.shaped import MooseBed, shaped_cluster

import tracehint

HERE = Path(__file__).parents[2]
RESULTS = HERE / "docs" / "reference" / "cluster-runs.json"
PAGE = HERE / "docs" / "reference" / "cluster-runs.md"
LINK = 100  # Mbit/s
TOOL = f"{sys.executable} -m tracehint"
# runs in one directory, with the data that tracehint stored in earlier ones
LEARNING = tuple(f"{n} run" for n in ("first", "second", "third", "fourth", "fifth"))
# setting -> prefix of the command
SETTINGS = {
    "plain": "",
    "local-first": "",
    "by hand": f"{TOOL} run --no-record --hints {{hints}} --",
    **dict.fromkeys(LEARNING, f"{TOOL} run --"),
}
PLACES = 'local = "node_{host}"\nwith_copies = "{place}_{copies}"\n'
_JOB = """#!/bin/bash
cd {folder}
begin=$(date +%s%N)
{command} >{log} 2>&1
echo $? $(($(date +%s%N) - begin)) >{done}.part
mv {done}.part {done}
"""


@dataclass(frozen=True)
class Measured:
    """One run: seconds of the whole command, bytes that the nodes received, `others`: the share of
    the processors that other work used in the second before it, messages of tracehint, and the
    checksum of the result."""

    workflow: str
    setting: str
    seconds: float
    bytes: int
    others: float
    said: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class Site:
    """The cluster; `work`: its directory on the local disk."""

    bed: MooseBed
    slurm: slurm.Cluster
    work: Path

    def run(self, name: str, setting: str, folder: Path) -> Measured:
        """Run the workflow anew in a directory of the store, in an allocation of all nodes."""
        flow, hints = WORKFLOWS[name], self.work / name / "hints.json"
        self._stage(name, folder, hints if setting == "by hand" else None)
        done, log = self.work / "done", self.work / "log"
        done.unlink(missing_ok=True)
        words = SETTINGS[setting].format(hints=hints)
        script = self.work / "job.sh"
        script.write_text(
            _JOB.format(
                folder=shlex.quote(str(folder)),
                done=done,
                log=log,
                command=f"{words} {flow.command}",
            )
        )
        self.bed.local_first(setting == "local-first")
        Path("/proc/sys/vm/drop_caches").write_text("3")
        watch = Watch(self.bed.folder)
        time.sleep(1)
        others, before = watch.stop().others, self.bed.received()
        if flow.batch:
            self.slurm.run("bash", script, cwd=self.work)
        else:
            nodes = f"-N{len(self.bed.nodes)}"
            self.slurm.sbatch(nodes, "--exclusive", "-o", "/dev/null", script, cwd=self.work)
            until(done.exists, f"{name}, {setting} ends", every_s=0.2)
        self.slurm.wait()
        time.sleep(1)  # until the store's clients have sent their reports
        status, took = map(int, done.read_text().split())
        text = log.read_text(errors="replace")
        assert status == 0, text[-2000:]
        self.bed.local_first(False)
        return Measured(
            name,
            setting,
            round(took / 1e9, 1),
            self.bed.received() - before,
            round(others, 2),
            tuple(_list_messages(text)),
            hashlib.sha256((folder / flow.result).read_bytes()).hexdigest()[:12],
        )

    def _stage(self, name: str, folder: Path, hints: Path | None) -> None:
        """Reset the directory to the inputs and tracehint's data. Without hints the inputs are a
        snapshot of one copy, so that they are on the same nodes in all runs."""
        folder.mkdir(exist_ok=True)
        for entry in folder.iterdir():
            if entry.name == ".tracehint":
                continue
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        inputs, copy = self.work / name / "inputs", self.bed.mount / f"{name}-inputs"
        if hints is None:
            if not copy.exists():
                self._call("cp", "-r", inputs, copy)
            self._call("mfsmakesnapshot", *sorted(copy.iterdir()), folder)
            return
        (self.work / "map.toml").write_text(PLACES)
        asked = ["--hints", hints, "--store", "moosefs", "--map", self.work / "map.toml"]
        head = [*TOOL.split(), "run", "--no-record", "--quiet", *asked, "--data-root", folder]
        self._call(*head, "--", "cp", "-r", f"{inputs}/.", folder)

    def _call(self, *words: str | Path) -> None:
        """Run a command on the node of the engine."""
        subprocess.run(self.bed.command(*words), check=True)

    def prepare(self, name: str, flow: ClusterWorkflow, size: int) -> None:
        """Make the inputs of the workflow and its hints by hand."""
        inputs = self.work / name / "inputs"
        inputs.mkdir(parents=True)
        flow.make(inputs, size)
        save(inputs.parent, *(rule(path, **values) for path, values in flow.by_hand().items()))


def _list_messages(text: str) -> Iterator[str]:
    """Yield the messages of tracehint about the run, without those that contain paths."""
    for line in text.splitlines():
        if line.startswith("tracehint: ") and "/" not in line:
            yield line.removeprefix("tracehint: ")


@contextmanager
def site() -> Iterator[Site]:
    """Start the cluster, with its disks in memory."""
    with tempfile.TemporaryDirectory(prefix="tracehint-cluster-") as name:
        memory, work = Path(name, "memory"), Path(name, "work")
        for folder in (memory, work):
            folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", memory], check=True)
        try:
            with shaped_cluster(memory, link=LINK) as bed:
                places = slurm.places_on(bed, bed.nodes)
                with slurm.cluster([n.label for n in bed.nodes], places=places) as cluster:
                    yield Site(bed, cluster, work)
        finally:
            subprocess.run(["umount", "-l", memory], check=True)


def table(name: str, runs: Sequence[Measured]) -> str:
    """Return medians and ranges as Markdown, and their ratio to the plain runs'."""
    base = [run for run in runs if run.setting == "plain"]
    lines = [
        f"| {WORKFLOWS[name].title} | s, median (range) | of plain | MB received, "
        "median (range) | of plain | runs |",
        "|---|---|---|---|---|---|",
    ]
    for setting in dict.fromkeys(run.setting for run in runs):
        rows = [run for run in runs if run.setting == setting]
        quick = _cells([r.seconds for r in _idle(rows)], [r.seconds for r in _idle(base)], 1)
        lean = _cells([r.bytes / 1e6 for r in rows], [r.bytes / 1e6 for r in base], 0)
        lines.append(f"| {setting} | {quick} | {lean} | {len(rows)} |")
    said = [line for run in runs if run.setting in LEARNING for line in run.said]
    plans = sorted({line.partition(",")[0] for line in said if line.startswith("planned for")})
    results = len({run.result for run in runs})
    same = "All have the same result" if results == 1 else f"{results} different results"
    notes = [f"{same}.", *(f"{plan[0].upper()}{plan[1:]}." for plan in plans)]
    if loaded := len(runs) - len(_idle(runs)):
        notes.insert(
            0,
            f"In {loaded} of {len(runs)} runs other work had more than {LOADED:.0%} of the "
            "machine's processors: their seconds are left out.",
        )
    return "\n".join([*lines, "", " ".join(notes)])


def _idle(runs: Sequence[Measured]) -> list[Measured]:
    """Return the runs without much other work, whose seconds are valid."""
    return [run for run in runs if run.others <= LOADED]


def _cells(values: Sequence[float], base: Sequence[float], digits: int) -> str:
    """Return median and range, and the ratio to the median of `base`."""
    if not values:
        return "- | -"
    middle, low, high = statistics.median(values), min(values), max(values)
    share = f"{middle / statistics.median(base):.2f}" if base else "-"
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f}) | {share}"


def _read() -> list[Measured]:
    return [Measured(**row) for row in json.loads(RESULTS.read_text())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workflow", action="append", choices=list(WORKFLOWS), help="all if none")
    parser.add_argument("--setting", action="append", choices=list(SETTINGS), help="all if none")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, help="pixels of a tile, letters of a database")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    args = parser.parse_args()
    names = args.workflow or list(WORKFLOWS)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users have compiled modules, too
    compileall.compile_dir(Path(tracehint.__file__).parent, quiet=2)
    if not args.page:
        programs = [program for name in names for program in WORKFLOWS[name].programs]
        if lost := slurm.missing() or missing_for(programs):
            parser.error(lost)
        _measure(names, args.setting or list(SETTINGS), args.rounds, args.size)
    for name in WORKFLOWS:
        if runs := [run for run in _read() if run.workflow == name]:
            into_page(PAGE, name, table(name, runs))


def _measure(names: Sequence[str], settings: Sequence[str], rounds: int, size: int | None) -> None:
    """Run the workflows; new runs of a workflow replace its stored ones."""
    kept = [run for run in _read() if run.workflow not in names]
    with site() as cluster:
        for name in names:
            cluster.prepare(name, WORKFLOWS[name], size or WORKFLOWS[name].size)
            for number in range(rounds):
                for setting in settings:
                    learning = setting in LEARNING
                    number_of = number if learning else "plain"
                    folder = cluster.bed.mount / f"{name}-{number_of}"
                    kept.append(cluster.run(name, setting, folder))
                    print(kept[-1], flush=True)
                    rows = [asdict(run) for run in kept]
                    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
