"""The same workflow, started in many ways, has the same names, rules and findings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import RunBuilder
from tests.support.cli import inside, record
from tracehint.analyzer.roots import data_roots
from tracehint.analyzer.tasks.segmentation import segment_tasks

MAKEFILE = (
    "out/c: out/b\n\tcat out/b out/b > out/c\nout/b: out/a\n\tsort out/a > out/b\n"
    "out/a: in.txt\n\tmkdir -p out; cat in.txt > out/a\n"
)
MAKEFLOW = (
    "out/a: in.txt\n\tmkdir -p out; cat in.txt > out/a\n\nout/b: out/a\n\tsort out/a > out/b\n\n"
    "out/c: out/b\n\tcat out/b out/b > out/c\n"
)
STEPS = "cat in.txt > out/a\nsort out/a > out/b\ncat out/b out/b > out/c\n"
RUN = f'cd "$(dirname "$0")"\nmkdir -p out\n{STEPS}'
ABSOLUTE = 'W=$(cd "$(dirname "$0")" && pwd)\nmkdir -p $W/out\n' + STEPS.replace(
    "in.txt", "$W/in.txt"
).replace("out/", "$W/out/")
NAMES = ["in.txt", "out/a", "out/b", "out/c"]

# working directory -> command; {wf} is the workflow's directory, {link} a link to its parent
STARTS = {
    "make": ("{wf}", ["make"]),
    "make -C": ("{wf}/..", ["make", "-C", "wf"]),
    "make -C from /": ("/", ["make", "-C", "{wf}"]),
    "make -C from elsewhere": ("/usr", ["make", "-C", "{wf}"]),
    "make -C through a link": ("/", ["make", "-C", "{link}/wf"]),
    "cd and make": ("{wf}/..", ["sh", "-c", "cd wf && make"]),
    "cd through a link": ("{link}", ["sh", "-c", "cd {link}/wf && make"]),
    "script": ("{wf}", ["sh", "run.sh"]),
    "script from the parent": ("{wf}/..", ["sh", "wf/run.sh"]),
    "script from /": ("/", ["sh", "{link}/wf/run.sh"]),
    "absolute names": ("{wf}", ["sh", "absolute.sh"]),
    "absolute names from the parent": ("{wf}/..", ["sh", "wf/absolute.sh"]),
    "absolute names from /": ("/", ["sh", "{wf}/absolute.sh"]),
    "makeflow": ("{wf}", ["makeflow", "x.mf"]),
    "makeflow from the parent": ("{wf}/..", ["makeflow", "wf/x.mf"]),
    "cd and makeflow": ("/", ["sh", "-c", "cd {wf}; makeflow x.mf"]),
}


def workflow(folder: Path) -> tuple[Path, Path]:
    """Create the workflow's directory and a link to its parent."""
    place = folder / "place" / "wf"
    place.mkdir(parents=True)
    for name, text in (
        ("Makefile", MAKEFILE), ("x.mf", MAKEFLOW), ("run.sh", RUN), ("absolute.sh", ABSOLUTE),
    ):  # fmt: skip  # a table
        (place / name).write_text(text)
    lines = "".join(f"{n}\n" for n in range(40_000))
    for there in (place, place.parent):  # makeflow runs tasks where it is started
        (there / "in.txt").write_text(lines)
    (folder / "link").symlink_to(place.parent)
    return place, folder / "link"


def told(folder: Path, start: str, collector: str) -> tuple[list[str], list[Any], list[Any]]:
    """Return names, rules and findings of a run started in this way."""
    place, link = workflow(folder)
    where, words = STARTS[start]
    cwd, *command = (word.format(wf=place, link=link) for word in (where, *words))
    if not shutil.which(command[0]) or ("makeflow" in start and not shutil.which("makeflow")):
        pytest.skip(f"{command[0]} is not installed")
    bundle = folder / "run.trace"
    done = record(*command, collector=collector, to=bundle, cwd=Path(cwd))
    assert done.returncode == 0, done.stderr
    analysis = json.loads(inside("analyze", bundle, "--format", "json", cwd=folder).stdout)
    hints = json.loads(inside("hints", bundle, "--format", "json", cwd=folder).stdout)
    declared = [place / "x.mf"] if "makeflow" in start else []
    lint = inside("lint", bundle, *declared, "--format", "json", cwd=folder)
    findings = json.loads(lint.stdout)["findings"]
    return (
        sorted(f["path"] for f in analysis["files"] if f["role"] != "software"),
        [(r["template"], r["producers"], r["consumers"], r["hints"]) for r in hints["rules"]],
        # findings are ordered by time saved, which differs between runs
        sorted((f["code"], f["template"], f["files"], f["bytes"]) for f in findings),
    )


@pytest.fixture(scope="module")
def first() -> dict[tuple[str, str], Any]:
    """Results of each way started in its own directory, by collector."""
    return {}


# Variants between two others, whose ways and places the rest covers; or the reference
# itself, compared with itself.
FULL = ("make -C", "make -C from /", "make -C from elsewhere", "cd and make",
        "script from the parent", "absolute names from the parent", "makeflow from the parent",
        "make", "script", "absolute names", "makeflow")  # fmt: skip  # a table


def cases() -> list[Any]:
    """Each start with one collector, in turn; with the other one in `make test-full`."""
    found = []
    for number, start in enumerate(STARTS):
        for collector in ("ebpf", "strace"):
            marks = [pytest.mark.ebpf] if collector == "ebpf" else []
            other = (number % 2 == 0) == (collector == "strace")
            marks += [pytest.mark.full] * (other or start in FULL)
            found.append(pytest.param(start, collector, marks=marks, id=f"{start}-{collector}"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("start", "collector"), cases())
def test_names_rules_and_findings_do_not_depend_on_the_start(
    tmp_path: Path, start: str, collector: str, first: dict[tuple[str, str], Any]
) -> None:
    ways = ("makeflow", "make", "script", "absolute names")
    way = next((way for way in ways if way in start), "make")
    if (way, collector) not in first:
        first[way, collector] = told(tmp_path / "first", way, collector)
    names, rules, findings = told(tmp_path / "second", start, collector)
    assert names == first[way, collector][0] == NAMES
    assert (rules, findings) == first[way, collector][1:]


# -- the same on handmade bundles ---------------------------------------------------------------


class Started:
    """A driver started in `cwd` with tasks in `place`."""

    def __init__(self, cwd: str, place: str, *arguments: str) -> None:
        self.run = RunBuilder(cwd=cwd)
        self.driver = self.run.process(["sh", *arguments])
        self.tasks = [
            self.run.process([name], parent=self.driver, cwd=place) for name in ("one", "two")
        ]

    def use(self, read: str, wrote: str) -> None:
        self.run.read(self.tasks[0], self.run.file(read, existed=True), 0, 9, at=1.0)
        made = self.run.file(wrote)
        self.run.write(self.tasks[0], made, 0, 9, at=2.0)
        self.run.read(self.tasks[1], made, 0, 9, at=3.0)

    def roots(self, folder: Path) -> list[bytes]:
        bundle = self.run.bundle(folder)
        return data_roots(bundle, (), segment_tasks(bundle))


def test_data_beside_the_place_of_the_tasks_keep_the_start_as_root(tmp_path: Path) -> None:
    run = Started("/proj", "/proj/wf")
    run.use("/proj/data/in", "/proj/wf/out")
    assert run.roots(tmp_path) == [b"/proj"]


def test_tasks_of_one_place_with_all_data_make_it_the_root(tmp_path: Path) -> None:
    run = Started("/proj", "/proj/wf")
    run.use("/proj/wf/in", "/proj/wf/out/x")
    assert run.roots(tmp_path) == [b"/proj/wf"]


def test_one_deep_folder_of_data_is_no_root_by_itself(tmp_path: Path) -> None:
    """The next run may use another folder, and its names must be comparable."""
    run = Started("/proj", "/proj")
    run.use("/proj/out/s1/in", "/proj/out/s1/x")
    assert run.roots(tmp_path) == [b"/proj"]


def test_a_directory_that_the_run_made_is_its_data_and_no_root(tmp_path: Path) -> None:
    """Work directories of engines: Nextflow with a single task that needs no input."""
    run = Started("/proj", "/proj/work/3f/0123456789abcdef0123456789abcd")
    run.use(
        "/proj/work/3f/0123456789abcdef0123456789abcd/in",
        "/proj/work/3f/0123456789abcdef0123456789abcd/out",
    )
    made = run.run.file("/proj/work", kind="dir")
    run.run.name(made, "mkdir", "/proj/work", at=0.5, proc=run.driver)
    assert run.roots(tmp_path) == [b"/proj"]


def test_where_a_run_was_merely_started_is_no_root_of_the_system(tmp_path: Path) -> None:
    run = Started("/usr", "/scratch/u/wf")
    run.use("/scratch/u/wf/in", "/scratch/u/wf/out/x")
    assert run.roots(tmp_path) == [b"/scratch/u/wf"]


def test_a_script_beside_its_data_tells_the_root_but_an_input_does_not(tmp_path: Path) -> None:
    run = Started("/proj", "/proj", "wf/run.sh", "wf/in")
    run.run.read(run.driver, run.run.file("/proj/wf/run.sh", existed=True), 0, 9, at=0.1)
    run.use("/proj/wf/in", "/proj/wf/out/x")
    assert run.roots(tmp_path / "script") == [b"/proj/wf"]
    run = Started("/proj", "/proj", "run.sh", "wf/in")
    run.run.read(run.driver, run.run.file("/proj/run.sh", existed=True), 0, 9, at=0.1)
    run.use("/proj/wf/in", "/proj/wf/out/x")
    assert run.roots(tmp_path / "input") == [b"/proj"]
