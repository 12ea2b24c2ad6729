"""`doctor`: its output in both formats, and the conditions that it tests."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import inside
from tracehint.app import checks
from tracehint.collectors.base import Availability
from tracehint.collectors.registry import COLLECTORS, check, choose
from tracehint.errors import CollectorError


def test_json_lists_every_collector_and_condition(tmp_path: Path) -> None:
    done = inside("doctor", "--format", "json", cwd=tmp_path)
    assert done.returncode in (0, 1)
    data = json.loads(done.stdout)
    assert [c["name"] for c in data["collectors"]] == list(COLLECTORS)
    for entry in data["collectors"]:
        assert entry["reason"]
        assert entry["usable"] or entry["remedy"]
    usable = [c["name"] for c in data["collectors"] if c["usable"] and COLLECTORS[c["name"]].auto]
    assert data["auto"] == (usable[0] if usable else None)
    assert (done.returncode == 0) == bool(usable)
    assert {c["name"] for c in data["checks"]} >= {"kernel", "BTF", "capabilities", "ptrace", "dot"}
    assert [way["name"] for way in data["ways"]] == ["preload"]
    for way in data["ways"]:
        assert way["reason"] and way["reaches"] and way["cost"]
        assert way["usable"] is not bool(way["remedy"])
    for entry in data["checks"]:
        assert entry["state"] == "ok" or entry["remedy"]


def test_text_names_the_remedy_of_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {f.name: f for f in (probe() for probe in checks.CHECKS)}
    assert (found["strace"].state, found["strace"].remedy) == (
        "missing",
        "install the package strace",
    )
    assert found["dot"].remedy == "install the package graphviz"


@pytest.mark.parametrize(
    ("mount", "problem"),
    [
        ({"path": "/", "fstype": "ext4", "options": "rw,relatime"}, ""),
        ({"path": "/home", "fstype": "ext4", "options": "rw,nosuid"}, "nosuid"),
        ({"path": "/nfs", "fstype": "nfs4", "options": "rw"}, "nfs4"),
        ({"path": "/scratch", "fstype": "lustre", "options": "rw"}, "lustre"),
    ],
)
def test_mounts_without_file_capabilities(mount: dict[str, str], problem: str) -> None:
    assert problem in checks.no_file_capabilities(mount)
    assert bool(problem) == bool(checks.no_file_capabilities(mount))


def test_mount_of_takes_the_innermost(monkeypatch: pytest.MonkeyPatch) -> None:
    table = [{"path": p} for p in ("/", "/a", "/a/b", "/ab")]
    monkeypatch.setattr(checks, "mounts", lambda: table)
    for path, mount in (("/a/b/c", "/a/b"), ("/a/x", "/a"), ("/ab/c", "/ab"), ("/z", "/")):
        assert checks.mount_of(Path(path))["path"] == mount


@pytest.mark.parametrize("scope", ["2", "3"])
def test_ptrace_scope(monkeypatch: pytest.MonkeyPatch, scope: str) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_args, **_more: scope + "\n")
    found = checks.ptrace_scope()
    assert (found.state, scope in found.text) == ("missing", True)


class Fake:
    """A collector that is usable or not."""

    def __init__(self, usable: bool) -> None:
        self.name = "fake"
        self.usable = usable

    def check(self) -> Availability:
        if self.usable:
            return Availability(True, "works here")
        return Availability(False, "no luck", "pray")

    conditions = check


@pytest.mark.parametrize(
    ("usable", "chosen"),
    [
        (("ebpf", "preload", "strace-light", "strace"), "ebpf"),
        (("preload", "strace-light", "strace"), "preload"),
        (("strace-light", "strace"), "strace-light"),
        (("strace",), "strace"),
    ],
)
def test_auto_takes_the_first_that_can_run_and_says_why(
    monkeypatch: pytest.MonkeyPatch, usable: tuple[str, ...], chosen: str
) -> None:
    fakes = {name: Fake(name in usable) for name, entry in COLLECTORS.items() if entry.auto}
    monkeypatch.setattr("tracehint.collectors.registry.load", fakes.get)
    collector, why = choose("auto")
    assert collector is fakes[chosen]
    assert why.startswith(f"recording with collector {chosen} (works here")
    for name in fakes:
        assert (f"not {name}: no luck. pray" in why) == (name not in usable)


def test_programs_that_the_library_cannot_enter_are_told(tmp_path: Path) -> None:
    if not check("preload").usable:
        pytest.skip(check("preload").reason)
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    static = tmp_path / "static"
    subprocess.run(["gcc", "-static", source, "-o", static], check=True)
    done = inside(
        "doctor", "--format", "json", "--program", "sh", "--program", static, "--program", "nope",
        cwd=tmp_path,
    )  # fmt: skip  # a table
    rows = json.loads(done.stdout)["programs"]
    assert [(r["program"], r["kind"], r["recorded"]) for r in rows] == [
        ("sh", "dynamic", True), (str(static), "static", False), ("nope", "not found", False),
    ]  # fmt: skip  # a table
    done = inside("doctor", "--program", static, cwd=tmp_path)
    assert f"  no  {static} (static)" in done.stdout


def test_programs_that_a_workflow_names_and_that_escape_are_told(tmp_path: Path) -> None:
    """Found through nested scripts, PATH, a relative path, and default names of workflow files."""
    if not check("preload").usable:
        pytest.skip(check("preload").reason)
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    (tmp_path / "tools").mkdir()
    static = tmp_path / "tools" / "my-aligner"
    subprocess.run(["gcc", "-static", source, "-o", static], check=True)
    step = tmp_path / "step.sh"
    step.write_text("#!/bin/sh\n# su is no program of this one\ncat in | tools/my-aligner > out\n")
    (tmp_path / "Makefile").write_text("all:\n\tsh step.sh; sort out\n")
    done = inside("doctor", "--format", "json", "--", "make", "all", cwd=tmp_path)
    rows = json.loads(done.stdout)["workflow"]
    assert [(Path(r["program"]).name, r["kind"]) for r in rows if not r["recorded"]] == [
        ("my-aligner", "static")
    ]
    assert {"make", "sh", "cat", "sort"} <= {Path(r["program"]).name for r in rows if r["recorded"]}
    done = inside("doctor", "--", "make", "all", cwd=tmp_path)
    assert f"  no  {static} (static; named in {step})" in done.stdout
    assert "are recorded, 1 are not" in done.stdout


def test_without_any_collector_the_remedies_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracehint.collectors.registry.load", lambda _: Fake(False))
    with pytest.raises(CollectorError, match=r"ebpf: no luck\. pray") as caught:
        choose("auto")
    assert caught.value.exit_code == 125
    with pytest.raises(CollectorError, match="strace: no luck") as caught:
        choose("strace")
    assert caught.value.remedy == "pray"


def test_a_check_that_crashes_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> Availability:
        raise RuntimeError("boom")

    monkeypatch.setattr(Fake, "check", broken)
    monkeypatch.setattr("tracehint.collectors.registry.load", lambda _: Fake(True))
    with pytest.raises(CollectorError, match="boom"):
        choose("strace")


def test_another_processor_has_no_library_and_no_hints_at_creation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = os.uname_result((*os.uname()[:4], "aarch64"))
    monkeypatch.setattr("os.uname", lambda: other)
    text = inside("doctor", cwd=tmp_path).stdout
    recorded, _, hinted = text.partition("Hints at the creation of files")
    for part in (recorded, hinted):
        assert "no  preload\n      the preload library supports only x86-64 Linux, this is" in part
    assert "`tracehint apply`" in " ".join(hinted.split())
