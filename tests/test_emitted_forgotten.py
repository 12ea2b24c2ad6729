"""A rule that does not write its output fails with each emitted file as it does without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import slurm
from tests.support.hints import rule
from tests.support.plans import planned, save_plan
from tests.test_created_engines import (
    ENGINES,
    MAKEFLOW,
    Row,
    ended,
    forgetful,
    made,
    prepared,
    rules,
)
from tracehint.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.engine]

TASKS = {"part_1.dat": 0, "part_2.dat": 1, "part_3.dat": 0, "total.dat": 1}
RULES = [
    rule("part_{n}.dat", id=name, producer=name, consumers=("total", "TOTAL"), DP="local")
    for name in ("part", "PART")
]


def swapped(word: str, other: str) -> Callable[[list[str]], list[str]]:
    """Return a function that replaces the workflow by the emitted file in a command."""
    return lambda command: [other if w == word else w for w in command]


@dataclass(frozen=True)
class Emitted:
    """The arguments of `emit`, and the command that uses its output."""

    row: str
    words: tuple[str, ...]
    output: str
    command: Callable[[list[str]], list[str]]


EMITTED = {
    "Makeflow": Emitted("Makeflow", ("makeflow", "w"), "h.mf", swapped("w", "h.mf")),
    "Makeflow, outputs made": Emitted(
        "Makeflow", ("makeflow", "w", "--precreate"), "h.mf", swapped("w", "h.mf")
    ),
    "Snakemake": Emitted("Snakemake", ("snakemake", "w"), "h.smk", swapped("w", "h.smk")),
    "Snakemake 8": Emitted("Snakemake 8", ("snakemake", "w"), "h.smk", swapped("w", "h.smk")),
    "Nextflow": Emitted(
        "Nextflow", ("nextflow",), "h.config", lambda command: [*command, "-c", "h.config"]
    ),
    "cwltool": Emitted("cwltool", ("cwl", "w"), "h.cwl", swapped("w", "h.cwl")),
    "Parsl": Emitted("Parsl", ("parsl",), "tracehint_parts.py", swapped("w", "planned.py")),
}
# the same program, with apps for the executors of the parts
PARSL = (("from parsl import", "import tracehint_parts, parsl\nfrom parsl import"),
         ("@bash_app\ndef part", "def part"),
         ("with load(", "part = tracehint_parts.planned(bash_app, part)\n    with load("),
         ("executors=[ThreadPoolExecutor(max_threads=2)]",
          "executors=tracehint_parts.executors(lambda label, node: "
          "ThreadPoolExecutor(label=label, max_threads=2))"))  # fmt: skip  # a table


def emitted(folder: Path, what: Emitted) -> None:
    """Emit into the workflow's folder; planned.py is a Parsl program that uses the module."""
    hints = save_plan(folder.parent, planned(TASKS, rules=RULES))
    engine, *more = what.words
    words = ["emit", str(hints), "--workflow-engine", engine]
    words += [str(folder / w) if w == "w" else w for w in more]
    assert main([*words, "-o", str(folder / what.output)]) == 0
    text = (folder / "w").read_text()
    for old, new in PARSL:
        text = text.replace(old, new)
    (folder / "planned.py").write_text(text)


# Full runs only: another version of an engine ends in the same way, and Nextflow gets settings
# that do not wrap its tasks: e2e/test_nextflow.py runs with them.
HELD = ("Snakemake 8", "Nextflow")
FORGETFUL = [pytest.param(n, marks=pytest.mark.full) if n in HELD else n for n in EMITTED]


@pytest.mark.parametrize("name", FORGETFUL)
def test_a_forgotten_output_is_noticed_as_without_the_emitted_file(
    name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    what, folder = EMITTED[name], tmp_path / "w"
    row = ENGINES[what.row]
    command, env = prepared(folder, row, forgotten="2")
    emitted(folder, what)
    words = what.command(command)
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    found = ended(folder, row, done.returncode)
    assert found == forgetful(tmp_path_factory, what.row), done.stdout + done.stderr


@pytest.fixture(scope="module")
def cluster() -> Iterator[slurm.Cluster]:
    if slurm.missing():
        pytest.skip(slurm.missing())
    with slurm.cluster(("node1", "node2")) as started:
        yield started


@pytest.mark.parametrize("forgotten", ["", "2"])
def test_jobs_of_slurm_notice_it_as_makeflow_does(
    cluster: slurm.Cluster, tmp_path: Path, forgotten: str
) -> None:
    row, folder = Row((), rules(MAKEFLOW), lambda: sys.executable), tmp_path / "w"
    prepared(folder, row, forgotten)
    hints = save_plan(tmp_path, planned(TASKS))
    words = ["emit", str(hints), "--workflow-engine", "slurm", str(folder / "w")]
    words += ["--hosts", str(tmp_path / "hosts.toml"), "-o", str(folder / "jobs.sh")]
    assert main(words) == 0
    cluster.run("sh", "jobs.sh", cwd=folder)
    cluster.wait()
    names = {Path(path).name for path in made(folder, row)}
    assert names == set(TASKS) - ({"part_2.dat", "total.dat"} if forgotten else set())
    said = "".join(path.read_text() for path in folder.glob("slurm-*.out"))
    assert ("not created by this rule: part_2.dat" in said) == bool(forgotten)
