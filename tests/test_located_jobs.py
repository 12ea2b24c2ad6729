"""Locations of files that only jobs on other nodes read are queried when recordings are joined."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import RunBuilder
from tests.support.hints import rule, save
from tests.support.needs import needs_preload
from tracehint.adapters.place import allocation
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.project.state import KnownRun, add_run, claim
from tracehint.adapters.stores.base import Location
from tracehint.analyzer.model import Options
from tracehint.app import locations
from tracehint.app.jobs import Jobs
from tracehint.app.jobs import _merge_bundle as joined
from tracehint.app.run_loop import learn_hints
from tracehint.cli import main
from tracehint.hintgen.compare.proof import MIN_READ_BYTES, located_bytes, not_helped
from tracehint.hintgen.hints.hintfile import dump, load
from tracehint.hintgen.inputs import Input, load_run
from tracehint.schemas.manifest import RecordingHost
from tracehint.schemas.store import read_bundle


class Store:
    """A store whose files are all located on one node."""

    def __init__(self, node: str) -> None:
        self.node = node

    def locate(self, fd: int) -> Location | None:
        """Return that node."""
        return Location(nodes=(self.node,), detail={})


def test_the_address_of_another_node_becomes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_text("1" * 100)
    run = RunBuilder(host="node1", cwd=str(tmp_path))
    run.manifest.hosts.append(RecordingHost(name="node7", mounts=[]))
    file = run.file(str(tmp_path / "x"), existed=True)
    run.read(run.process(["cat"]), file, 0, 100, at=1.0)

    def resolved(name: str, *_: Any, **__: Any) -> list[Any]:
        if name != "node7":
            raise socket.gaierror
        return [(2, 1, 6, "", ("10.9.8.7", 0)), (10, 1, 6, "", ("fe80::7", 0, 0, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    for node, name in (("10.9.8.7", "node7"), ("10.9.8.6", "10.9.8.6")):
        bundle = run.bundle(tmp_path / name)
        found = locations.locations(bundle, Store(node), [os.fsencode(tmp_path)], "node1")
        assert [row["value"] for row in found.rows] == [name]


@pytest.mark.slow
@needs_preload()
def test_files_that_only_a_job_read_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's recording arrives after the command has ended, as from a distant node."""
    (tmp_path / "in").write_text("1" * 1000)
    job = RunBuilder(host="node7", cwd=str(tmp_path))
    file = job.file(str(tmp_path / "in"), existed=True)
    job.read(job.process(["sort", "in"]), file, 0, 1000, at=1.0)

    def join(self: Jobs, bundle: Path, *, quiet: bool) -> None:  # noqa: ARG001
        assert joined(bundle, [job.save(tmp_path / "job.trace")])

    monkeypatch.setattr(Jobs, "join", join)
    monkeypatch.setattr(locations, "locator", lambda *_: Store("node7"))
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--collector", "preload", "--", "true"]) == 0
    bundle = read_bundle(tmp_path / ".tracehint/runs/0001.trace")
    paths = {row["file"]: row["path"] for row in bundle.tables["opens"].to_pylist()}
    said = {paths[row["file"]]: row["value"] for row in bundle.tables["attributes"].to_pylist()}
    assert said[os.fsencode(tmp_path / "in")] == "node7"


# -- Rules that did not move data closer to its reader, detected from two runs with locations


SIZE = 2 * MIN_READ_BYTES


# file -> rule that hinted it, locations before and after (the reader runs on node1)
FILES = {
    "near.dat": ("helped", "node2", "node1"),
    "far.dat": ("useless", "node2", "node2"),
    "half.dat": ("some", "node2=1", "node1=0.5,node2=0.5"),
    "lost.dat": ("worse", "node1", "node2"),
    "plain.dat": ("", "node2", "node2"),
}


def run_of(
    place: Path, which: int, size: int = SIZE, names: tuple[str, str] = ("node1", "node2")
) -> Path:
    """Save a recording; `which`: 1 before, 2 after; `names`: names of node1 and node2."""
    run = RunBuilder(host=names[0])
    driver = run.process(["sh", "w.sh"])
    made = run.process(["make"], parent=driver, start=1, end=2)
    used = run.process(["use"], parent=driver, start=3, end=4)
    for name, row in FILES.items():
        where = row[which].replace("node1", names[0]).replace("node2", names[1])
        file = run.file(f"/data/{name}", existed=False, size=size)
        run.access("write", made, file, 0, size, at=1.5)
        run.access("read", used, file, 0, size, at=3.5)
        run._add("attributes", file=file, name="location", value=where)
        if which == 2 and row[0]:
            run._add(
                "settings", t_ns=1, pid=1, path=f"/data/{name}".encode(), rule=row[0], pattern="",
                hint="DP=local", key="user.DP", value=b"local", state="set", error=None, why="",
            )  # fmt: skip  # a table
    run.save(place)
    return place


def loaded(place: Path) -> Input:
    return load_run(place, Options())


def test_a_rule_is_judged_by_where_its_files_were_read_from(tmp_path: Path) -> None:
    first, second = (loaded(run_of(tmp_path / str(n), n)) for n in (1, 2))
    assert located_bytes(first.analysis, first.bundle) == (SIZE, 4 * SIZE)
    assert located_bytes(second.analysis, second.bundle) == (1.5 * SIZE, 3.5 * SIZE)
    assert not_helped(first, second) == ["useless", "worse"]


@pytest.mark.parametrize(
    "names", [("10.7.0.1", "10.7.0.2"), ("fd00::1", "fd00::2"), ("node1.a.org", "node2.a.org")]
)
def test_nodes_are_told_apart_by_address_as_well(tmp_path: Path, names: tuple[str, str]) -> None:
    run = loaded(run_of(tmp_path / "1", 1, names=names))
    assert located_bytes(run.analysis, run.bundle) == (SIZE, 4 * SIZE)


@pytest.mark.parametrize("known", ["host file", "Slurm"])
def test_a_plan_uses_the_node_that_holds_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    """Any name or address of the node matches; files in parts or on other nodes are left out."""
    path = run_of(tmp_path / "1", 2, names=("10.7.0.1", "node2.a.org"))
    analysis = loaded(path).analysis
    rows = "NodeName=n1 Arch=x NodeAddr=10.7.0.1 Port=1\nNodeName=x NodeAddr=$(x)\nNodeName=node2\n"
    monkeypatch.setattr(allocation, "_ask", lambda *_: rows if known == "Slurm" else "")
    also = ("10.7.0.1",) if known == "host file" else ()
    hosts = [Host(name="x"), Host(name="node2"), Host(name="n1", also=also)]
    held = locations.find_holders(path, analysis, hosts)
    files = zip(*(analysis.files[name].to_pylist() for name in ("file", "path")), strict=True)
    held = {path.rpartition(b"/")[2]: held[file] for file, path in files if file in held}
    assert held == {b"near.dat": 2, b"far.dat": 1, b"lost.dat": 1, b"plain.dat": 1}
    assert not locations.find_holders(path, analysis, hosts[:1])


@pytest.mark.slow
def test_little_and_what_nobody_knows_decides_nothing(tmp_path: Path) -> None:
    small = [loaded(run_of(tmp_path / f"s{n}", n, MIN_READ_BYTES // 2)) for n in (1, 2)]
    assert not_helped(*small) == []
    run = RunBuilder()
    run.process(["sh", "w.sh"])
    run.save(tmp_path / "unknown")
    unknown, second = loaded(tmp_path / "unknown"), loaded(run_of(tmp_path / "b", 2))
    assert not_helped(unknown, second) == [] == not_helped(second, unknown)


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 3])
def test_the_loop_leaves_them_out_from_then_on(tmp_path: Path, number: int) -> None:
    """Rules that did not help in run 2 are left out of all later hints."""
    save(tmp_path, *(rule(n, id=row[0], DP="local") for n, row in FILES.items() if row[0]))
    for n in range(1, number + 1):
        _, place = claim(tmp_path)
        place.rmdir()
        place = Path(place)
        run_of(place, min(n, 2))
        if n > 1:
            dump(load(tmp_path / "hints.json"), place / "hints.json", force=True)
        state = add_run(tmp_path, KnownRun(n, ("sh", "w.sh"), 0, 1.0, n > 1))
    found = learn_hints(state, ("sh", "w.sh"), None, ())
    assert found is not None
    assert set(found.left_out) == {"far.dat", "lost.dat"}
    names = {r.template for r in found.hints.rules}
    assert names and not names & set(found.left_out)
