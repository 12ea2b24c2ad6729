"""The script that sets attributes: what it sets, that names never become shell text, undo."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.appliers import attributes, emit, sh
from tests.support.bundles import RunBuilder
from tests.support.hints import hint_file, literal, rule, save
from tracehint.adapters.paths import Paths, remembered_paths
from tracehint.adapters.plan import build_plan
from tracehint.adapters.stores.registry import open_store
from tracehint.adapters.stores.script import make_script
from tracehint.cli import main
from tracehint.hintgen.hints.model import Formula, Hint, Rule

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tagger")]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    (root / "proj").mkdir(parents=True)
    (root / "proj" / "p_1.fits").write_text("x")
    return root


TWO = (rule("proj/p_{n}.fits", DP="local", examples=("proj/p_1.fits",)), rule("out/o", DP="local"))


@pytest.mark.parametrize("shell", [s for s in ("dash", "bash", "busybox") if shutil.which(s)])
def test_sets_files_and_directories(tmp_path: Path, data: Path, shell: str) -> None:
    script = emit(tmp_path, *TWO)
    done = subprocess.run(
        [shell, *(["sh"] if shell == "busybox" else []), script, data], capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert attributes(data / "proj") == {"user.DP": b"local"}
    assert attributes(data / "proj/p_1.fits") == {"user.DP": b"local"}
    assert not (data / "out").exists()
    assert b"does not exist: ./out/o" in done.stdout


def test_one_file_on_standard_output(
    tmp_path: Path, data: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    hints = save(tmp_path, *TWO)
    assert main(["emit", str(hints), "--store", "xattr"]) == 0
    text = capfdbinary.readouterr().out
    done = subprocess.run(["sh"], input=text, cwd=data, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert attributes(data / "proj/p_1.fits") == {"user.DP": b"local"}


def test_only_comments_differ_between_scripts() -> None:
    """The code is constant: whatever the names are, only comment lines may differ."""

    def text(*rules: Rule) -> str:
        hints = hint_file(*rules)  # not read from a file: has names that the reader would refuse
        plan = build_plan(hints, Paths(files=remembered_paths(hints)))
        return make_script(hints, plan, open_store("xattr"), inside=False).text

    evil = literal(
        b"x\n'; touch PWNED; '",
        DP="local",
        id="'\n`id`\n",
        pattern="$(id)",
        evidence={"files": 1, "bytes": 1, "\ntouch PWNED\n": "`id`"},
    )
    first, second = text(*TWO), text(evil)
    strip = re.compile(r"^#.*\n", re.MULTILINE)
    assert strip.sub("", first) == strip.sub("", second)
    comments = [line for line in second.splitlines() if line.startswith("#")]
    assert all(
        re.fullmatch(r"#[A-Za-z0-9 ._/+=,:;@%*{}()\[\]<>|~^?!'#-]*", c) for c in comments[1:]
    )


@pytest.mark.parametrize("evil", [b"link", b"dirlink/f", b"proj/../../secret"])
def test_a_link_or_a_way_out_is_refused(tmp_path: Path, data: Path, evil: bytes) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("x")
    (data / "link").symlink_to(outside / "f")
    (data / "dirlink").symlink_to(outside)
    (tmp_path / "secret").write_text("x")
    script = emit(tmp_path, *TWO)
    table = (tmp_path / "set.sh.data").read_bytes()
    (tmp_path / "set.sh.data").write_bytes(table.replace(b"proj/p_1.fits", evil))
    done = sh(script, data)
    assert done.returncode == 1
    assert b"FAILED" in done.stderr
    assert attributes(outside / "f") == {}
    assert attributes(outside) == {}
    assert attributes(tmp_path / "secret") == {}


def test_rules_without_a_concrete_file_say_what_to_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hints = save(tmp_path, rule("{word}/x_{n}", DP="local"))
    assert main(["emit", str(hints), "--store", "xattr"]) == 2
    assert "--workflow" in capsys.readouterr().err


def test_a_store_says_what_it_cannot_express(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hints = save(tmp_path, *TWO, rule("t", Replication=2))
    assert main(["emit", str(hints), "--store", "orangefs"]) == 0
    said = capsys.readouterr()
    assert "Replication: not expressible" in said.err
    assert "Not expressible (none)" in said.out


def test_the_driver_passes_shellcheck(tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    script = emit(tmp_path, *TWO)
    subprocess.run(["shellcheck", "-s", "sh", script], check=True)


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_whatever_the_umask_the_journal_is_taken_up_again(
    tmp_path: Path, data: Path, mask: int
) -> None:
    script = emit(tmp_path, *TWO)
    for mode in ([], [], ["--undo"]):
        done = subprocess.run(["sh", script, *mode, data], capture_output=True, umask=mask)
        assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(p.name for p in data.iterdir()) == ["proj"]


def test_a_script_without_its_table_says_so(tmp_path: Path, data: Path) -> None:
    script = emit(tmp_path, *TWO)
    Path(f"{script}.data").unlink()
    done = sh(script, data)
    assert (done.returncode, b"must be beside it" in done.stderr) == (2, True)


def test_a_helper_that_is_not_there_is_named(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEHINT_TAG", str(tmp_path / "nowhere"))
    done = sh(emit(tmp_path, *TWO), data)
    assert (done.returncode, b"nowhere: no such program" in done.stderr) == (2, True)


@pytest.mark.parametrize("place", ["here it was written", "on the path", "nowhere"])
def test_where_a_script_finds_its_program(
    tmp_path: Path, data: Path, tagger: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.delenv("TRACEHINT_TAG")
    installed = tmp_path / "it's installed" / "tracehint-tag"
    installed.parent.mkdir()
    shutil.copy(tagger, installed)
    monkeypatch.setattr("tracehint.adapters.stores.script._BUILT", installed)
    script = emit(tmp_path, *TWO)
    if place != "here it was written":
        moved = installed.rename(tmp_path / "tracehint-tag")
    if place == "on the path":
        monkeypatch.setenv("PATH", f"{moved.parent}:{os.environ['PATH']}")
    done = sh(script, data)
    assert done.returncode == (2 if place == "nowhere" else 0), done.stderr
    assert (b"TRACEHINT_TAG" in done.stderr) == (place == "nowhere")
    assert bool(attributes(data / "proj")) == (place != "nowhere")


def test_thousands_of_records(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for i in range(311):
        (data / f"f{i}").touch()
    script = emit(tmp_path, rule("f{n}", DP="local"), more=("--dir", str(data)))
    assert sh(script, "--quiet", data).returncode == 0
    assert all(attributes(data / f"f{i}") == {"user.DP": b"local"} for i in range(311))


def test_files_of_an_earlier_run(tmp_path: Path) -> None:
    """--like provides names and readers: the group is named after the only task that reads it."""
    run = RunBuilder(cwd="/data", data_roots=["/data"])
    driver = run.process(["sh", "wf.sh"])
    for i in range(7):
        made = run.process(["gen", f"o_{i}"], parent=driver, start=i, end=i + 1)
        out = run.file(f"/data/o_{i}.dat", existed=False, size=1 << 20)
        run.write(made, out, 0, 1 << 20, at=i + 0.5)
    use = run.process(["use"], parent=driver, start=10, end=20)
    for row in [r for r in run.rows["files"] if r["kind"] == "file"]:
        run.read(use, row["file"], 0, 1 << 20, at=11)
    bundle = run.save(tmp_path / "run.trace")
    formula = Formula(fn="group", prefix="use", captures=(), by="consumer")
    group = rule(
        "o_{n}.dat",
        pattern="reduce",
        producer="gen",
        uses=("fan_in",),
        hints=(Hint("DP", "collocation|use", "create", formula),),
    )
    emit(tmp_path, group, more=("--like", str(bundle)))
    table = (tmp_path / "set.sh.data").read_bytes().split(b"\0")
    values = {bytes.fromhex(v.decode()[2:]) for v in table if re.fullmatch(b"0x[0-9a-f]+", v)}
    assert {path for path in table if path.startswith(b"o_")} == {b"o_%d.dat" % i for i in range(7)}
    assert len(values) == 1
    assert values.pop().startswith(b"collocation|use:")


def test_comments_say_what_a_rule_is_worth() -> None:
    from tracehint.adapters.stores.script import _rule_evidence
    from tracehint.hintgen.hints.model import Rule

    evidence = {"files": 8, "bytes": 4 << 20, "saves_bytes": 7 << 20, "level": 0}
    rule = Rule("r1", "c_{n}", "x", "", "fit", ("a", "b"), "pipeline", (), 0.89, evidence)
    assert _rule_evidence(rule) == (
        "fit -> a, b, seen in 8 files of 4 MiB in all, saves 7 MiB, confidence 0.89"
    )
    rule = Rule("r1", "c_{n}", "x", "", None, (), "stage_in", (), 0.5, {"files": 0, "bytes": 0})
    assert _rule_evidence(rule) == "an input -> nobody, confidence 0.50"
