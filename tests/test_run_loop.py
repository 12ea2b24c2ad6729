"""`run` without hints: the second run has hints from the first; `compare`, `status`, `init`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from tests.support.cli import TRACEHINT, inside
from tests.support.cli import said as tracehint
from tests.support.hints import json_schema, rule, save
from tests.support.patience import until
from tracehint.adapters.project.config import find_config
from tracehint.adapters.project.state import (
    KEPT,
    OWN_S,
    KnownRun,
    ProjectState,
    Slower,
    add_run,
    claim,
    forget,
    read_state,
)
from tracehint.app.run_loop import learn_hints
from tracehint.commands.status import _text
from tracehint.errors import InputError
from tracehint.schemas.commandline.programs import workflow_name
from tracehint.schemas.store import read_bundle

pytestmark = pytest.mark.slow

SCHEMA = json_schema("compare")
WORKFLOW = """
mkdir -p out
for i in 1 2 3 4; do head -c 300000 /dev/zero >out/part_$i.bin; done
for i in 1 2 3 4; do sh -c "tr '\\0' x <out/part_$i.bin >out/next_$i.bin"; done
cat out/next_*.bin >out/all.bin
"""


@pytest.fixture
def workflow(tmp_path: Path) -> Path:
    """A directory with a workflow of nine tasks."""
    (tmp_path / "run.sh").write_text(WORKFLOW)
    return tmp_path


RUN = ("run", "--collector", "strace", "--", "sh", "run.sh")


def test_a_project_with_a_cluster_is_planned_from_the_second_run_on(workflow: Path) -> None:
    (workflow / "tracehint.toml").write_text('cluster = "moosefs"\n')
    assert "planned for moosefs: " not in tracehint(workflow, *RUN)
    shutil.rmtree(workflow / "out")
    assert "planned for moosefs: " in tracehint(workflow, *RUN)
    # on a busy machine the hinted run may have been slow, and the next would then have no hints
    tracehint(workflow, "status", "--forget")
    tracehint(workflow, *RUN)
    (workflow / "tracehint.toml").write_text('cluster = "gone.toml"\n')
    assert "no plan: " in tracehint(workflow, *RUN)


def test_a_run_that_was_other_work_is_said(workflow: Path) -> None:
    tracehint(workflow, *RUN)
    script = workflow / "run.sh"
    script.write_text(script.read_text() + "wc out/all.bin >out/count.txt\n")
    assert "differs from the one before" not in tracehint(workflow, *RUN)
    said = tracehint(workflow, *RUN)
    assert (
        "the last run differs from the one before: 1 task type in the second run alone: wc" in said
    )


def test_the_second_run_has_hints_and_the_proof_is_there(workflow: Path) -> None:
    said = tracehint(workflow, *RUN)
    assert "the next run applies them" in said
    assert not os.listxattr(workflow / "out/part_1.bin")
    subprocess.run(["rm", "-r", "out"], cwd=workflow, check=True)
    said = tracehint(workflow, *RUN)
    assert os.getxattr(workflow / "out/part_1.bin", "user.DP") == b"local"
    runs = workflow / ".tracehint/runs"
    compared = tracehint(workflow, "compare", runs / "0001.trace", runs / "0002.trace")
    assert compared.startswith("The run took")
    assert "Data placement is unknown" in compared
    data = json.loads(
        tracehint(workflow, "compare", runs / "0001.trace", runs / "0002.trace", "--format", "json")
    )
    jsonschema.validate(data, SCHEMA)
    hints = data["hints"]
    assert hints["wanted"] == hints["in_force"] >= 5
    assert (hints["lost"], hints["impossible"], hints["reasons"]) == (0, 0, [])
    assert data["seconds"]["before"] > 0
    assert data["remote_bytes"] == {"before": None, "after": None, "predicted": None}
    assert {"tr", "cat", "head"} <= {row["type"] for row in data["types"]}
    tracehint(
        workflow, "report", runs / "0002.trace", "--before", runs / "0001.trace", "-o", "r.html"
    )
    page = (workflow / "r.html").read_text()
    (shown,) = re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(shown)["compare"]["hints"] == hints
    assert "a plain file system stores the attributes" in json.loads(shown)["compare"]["doubt"]
    analysis = json.loads(tracehint(workflow, "analyze", runs / "0002.trace", "--format", "json"))
    named = [file["path"] for file in analysis["files"] if file["role"] != "software"]
    assert not [path for path in named if ".tracehint" in path]
    tracehint(workflow, "lint", runs / "0001.trace", status=1)
    found = tracehint(workflow, "lint", runs / "0002.trace", "--select", "TP")
    assert "No findings" in found or "TP00" not in found
    status = json.loads(tracehint(workflow, "status", "--format", "json"))
    assert [run["hinted"] for run in status["runs"]] == [False, True]
    assert "2" in tracehint(workflow, "status")
    tracehint(workflow, "status", "--forget")
    assert not (workflow / ".tracehint").exists()


def test_a_run_with_the_hints_of_the_last_one_is_not_recorded(workflow: Path) -> None:
    """Exceptions: it is a trial, its duration differed, or a hint was not in force."""
    kept = workflow / ".tracehint/state.json"

    def run_again(**facts: float) -> str:
        state = json.loads(kept.read_text())
        for known in state["runs"]:
            known |= {"seconds": 50.0, "around": 0.0}
        state["runs"][-1] |= facts
        kept.write_text(json.dumps(state))
        shutil.rmtree(workflow / "out")
        return tracehint(workflow, *RUN)

    tracehint(workflow, *RUN)
    shutil.rmtree(workflow / "out")
    tracehint(workflow, *RUN)
    said = run_again()
    assert (
        "not recorded: the last recorded run had the same hints" in said and "hints set on " in said
    )
    assert os.getxattr(workflow / "out/part_1.bin", "user.DP") == b"local"
    last = read_state(workflow).runs[-1]
    assert (
        last.hinted and not last.recorded and not (workflow / ".tracehint/runs/0003.trace").exists()
    )
    assert "not recorded, with the same hints" in tracehint(workflow, "status")
    assert "not recorded" in run_again()
    assert "not recorded" not in run_again(seconds=20.0)
    assert (workflow / ".tracehint/runs/0005.trace").is_dir()
    assert "not recorded" not in run_again(in_force=1)
    assert "not recorded" in run_again()
    script = workflow / "run.sh"
    script.write_text(script.read_text() + "wc out/all.bin >out/count.txt\n")
    assert "not recorded" in run_again()
    assert "not recorded" not in run_again()
    assert "not recorded" not in run_again(seconds=1.0)


def test_what_took_a_hint_away_is_named(tmp_path: Path) -> None:
    hints = save(tmp_path, rule("{name}.txt", DP="local"))
    folder = tmp_path / "w"
    folder.mkdir()
    script = "echo 1 >a.txt; echo 2 >b.txt; echo 3 >b; mv b b.txt; echo 4 >c; mv c c.txt; >d.txt"
    words = ("run", "--hints", hints, "--collector", "strace", "-o", "r.trace", "--")
    said = tracehint(folder, *words, "sh", "-c", script)
    assert "hints set on 2 of 4 matching files" in said
    rows = read_bundle(folder / "r.trace").tables["settings"].to_pylist()
    why = {Path(os.fsdecode(r["path"])).name: (r["state"], r["why"]) for r in rows}
    assert why == {
        "a.txt": ("set", ""),
        "b.txt": ("lost", "another file was renamed over it by mv"),
        "c.txt": ("missed", "made under another name and renamed"),
        "d.txt": ("set", ""),
    }
    data = json.loads(tracehint(folder, "compare", "r.trace", "r.trace", "--format", "json"))
    jsonschema.validate(data, SCHEMA)
    counts = {k: data["hints"][k] for k in ("wanted", "in_force", "lost", "impossible")}
    assert counts == {"wanted": 4, "in_force": 2, "lost": 1, "impossible": 1}


def test_a_failed_run_teaches_nothing(workflow: Path) -> None:
    words = ("run", "--collector", "strace", "--", "sh", "-c", "echo 1 >x; exit 5")
    assert "nothing is learned" in tracehint(workflow, *words, status=5)
    assert "nothing is learned" in tracehint(workflow, *words, status=5)
    assert [run.hinted for run in read_state(workflow).runs] == [False, False]


def test_a_run_with_nothing_to_do_teaches_nothing(tmp_path: Path) -> None:
    """All results of the engine exist: in the first run, and after runs that were learned from."""
    (tmp_path / "Makefile").write_text("out: in\n\tsort in >mid\n\tsort -r mid >out\n")
    (tmp_path / "in").write_text("1\n" * 40_000)
    words = ("run", "--collector", "strace", "--", "make")
    (tmp_path / "out").touch()
    assert "no task ran" in tracehint(tmp_path, *words)
    for hinted in (False, True):
        (tmp_path / "out").unlink()
        assert ("hints set on " in tracehint(tmp_path, *words)) == hinted
    for _ in range(KEPT + 1):  # earlier learned runs are kept
        said = tracehint(tmp_path, *words)
        assert "no task ran" in said
        assert "0 of 0" not in said
        assert "with them" not in said
    runs = read_state(tmp_path).runs
    assert [run.number for run in runs if run.teaches] == [2, 3]
    assert len(list((tmp_path / ".tracehint/runs").glob("*.trace"))) == 2 + KEPT
    assert "no task ran" in tracehint(tmp_path, "status")
    (tmp_path / "out").unlink()
    assert "hints set on " in tracehint(tmp_path, *words)


def test_the_log_of_earlier_runs_is_left_out(tmp_path: Path) -> None:
    """Makeflow appends to its log: earlier tasks are not part of this run."""
    if shutil.which("makeflow") is None:
        pytest.skip("not there: makeflow")
    (tmp_path / "my.mf").write_text("a: in\n\tsort in > a\nb: a\n\tsort -r a > b\n")
    (tmp_path / "in").write_text("1\n" * 40_000)
    words = ("run", "--collector", "strace", "--", "makeflow", "-T", "local", "my.mf")
    tracehint(tmp_path, *words)
    time.sleep(2.5)  # resolution of the logs' clocks
    (tmp_path / "b").unlink()
    tracehint(tmp_path, *words)
    tables = read_bundle(tmp_path / ".tracehint/runs/0002.trace").tables
    commands = tables["declared_tasks"].column("command").to_pylist()
    assert [b"sort -r" in command for command in commands] == [True]
    time.sleep(2.5)
    assert "no task ran" in tracehint(tmp_path, *words)


def test_two_workflows_in_one_directory_are_learned_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.sh").write_text(f"sort in >{name}.mid\ncat {name}.mid >{name}.out\n")
    (tmp_path / "in").write_text("1\n" * 40_000)
    words = ("run", "--collector", "strace", "--", "sh")
    for name in ("one", "two"):
        assert "learned from this run" in tracehint(tmp_path, *words, f"{name}.sh")
    assert "hints from 1 run in" in tracehint(tmp_path, *words, "-e", "./one.sh")


def test_a_killed_run_is_named_and_forgotten(tmp_path: Path) -> None:
    """kill -9 during a run: `status` names the remains, and the next run is learned from."""
    command = ["run", "--collector", "strace", "--", "sh", "-c", "sort in >mid; touch on; sleep 60"]
    (tmp_path / "in").write_text("1\n" * 40_000)
    with subprocess.Popen(
        [*TRACEHINT, *command], cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True
    ) as run:
        until((tmp_path / "on").exists, "the file of the command")
        os.killpg(run.pid, signal.SIGKILL)
    said = tracehint(tmp_path, "status")
    assert "running, or interrupted: .tracehint/runs/0001.trace" in said
    after = tracehint(tmp_path, "run", "--collector", "strace", "--", "sh", "-c", "sort in >mid")
    assert "learned from this run" in after
    assert read_state(tmp_path).runs[-1].number == 2
    assert "forgotten" in tracehint(tmp_path, "status", "--forget")
    assert not (tmp_path / ".tracehint").exists()


def run_of(number: int, *, hinted: bool = True, status: int = 0) -> KnownRun:
    return KnownRun(number, ("/bin/sh", "x"), status, 1.0, hinted)


def test_the_state_keeps_the_last_recordings(tmp_path: Path) -> None:
    for number in range(1, 7):
        state, place = claim(tmp_path)
        assert place.name == f"{number:04}.trace"
        add_run(tmp_path, run_of(number))
    state = read_state(tmp_path)
    assert [run.number for run in state.usable(("bash", "x"))] == [4, 5, 6][-KEPT:]
    assert len(state.runs) == 6
    assert forget(tmp_path)
    assert not (tmp_path / ".tracehint").exists()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": "tracehint.state/1", "runs": [{}]}', "[" * 100_000,
     '{"schema": "tracehint.state/1", "runs": [5]}'],
)  # fmt: skip  # a table
def test_a_strange_state_is_refused_and_can_be_forgotten(tmp_path: Path, text: str) -> None:
    (tmp_path / ".tracehint").mkdir()
    (tmp_path / ".tracehint/state.json").write_text(text)
    with pytest.raises(InputError, match=r"state\.json"):
        read_state(tmp_path)
    said = tracehint(
        tmp_path, "run", "--collector", "strace", "--", "sort", "-o", "made", "/dev/null"
    )
    assert "this run has no hints: cannot use" in said and "state.json.damaged" in said
    assert (tmp_path / "made").exists()
    assert (tmp_path / ".tracehint/state.json.damaged").read_text() == text
    assert [run.number for run in read_state(tmp_path).runs] == [1]
    assert forget(tmp_path)


def test_a_planted_state_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".tracehint").symlink_to("elsewhere")
    with pytest.raises(InputError):
        read_state(tmp_path)
    with pytest.raises(InputError):
        claim(tmp_path)
    assert not any((tmp_path / "elsewhere").iterdir())


def test_init_writes_the_defaults_of_all_commands(tmp_path: Path) -> None:
    (tmp_path / "x.makeflow").write_text("")
    said = tracehint(tmp_path, "init")
    assert "Next: tracehint run -- makeflow" in said
    config = find_config(tmp_path)
    assert config is not None
    assert config.values["engine"] == "makeflow"
    assert config.parameters()["data_roots"] == (str(tmp_path.resolve()),)
    assert "exists" in tracehint(tmp_path, "init", status=2)
    written = tmp_path / "tracehint.toml"
    more = (
        'cluster = "two-racks"\n\n[lint]  # ours\ndisable = ["TP001"]\n[[lint.x]]\ny = [\n[1],\n]\n'
    )
    written.write_text('store = "nfs"\ndata_root = [\n"/a",\n]\n' + more)
    tracehint(tmp_path, "init", "--force")
    text = written.read_text()
    assert text.endswith(more.partition("\n\n")[2])
    assert 'store = "xattr"' in text and 'cluster = "two-racks"\n' in text
    tracehint(tmp_path, "init", "--force")
    assert written.read_text() == text
    hints = save(tmp_path, rule("{name}.txt", DP="local"))
    (tmp_path / "a.txt").touch()
    assert "would be set" in tracehint(tmp_path, "apply", hints, ".", "--dry-run")


@pytest.mark.parametrize("text", ["store = 5", "shop = 'x'", "store = ''", "store = ", "x" * 9])
def test_a_strange_project_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tracehint.toml").write_text(text)
    assert "tracehint.toml" in tracehint(tmp_path, "status", status=2)


FIRST_NAMES = """
import os, tempfile, sys
for i in range(6):
    fd, name = tempfile.mkstemp(dir="out")
    os.write(fd, b"x" * 200000)
    os.close(fd)
    os.replace(name, f"out/part_{i}.bin")
    with open(f"out/side_{i}.dat.part", "wb") as f:
        f.write(b"y" * 200000)
    os.rename(f"out/side_{i}.dat.part", f"out/side_{i}.dat")
"""
SECOND = "import sys; open(sys.argv[2], 'wb').write(open(sys.argv[1], 'rb').read())"


def test_files_made_under_other_names_have_their_hints(tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text(FIRST_NAMES)
    (tmp_path / "use.py").write_text(SECOND)
    (tmp_path / "run.sh").write_text(
        f"mkdir -p out; {sys.executable} make.py\n"
        "for i in 0 1 2 3 4 5; do for n in part_$i.bin side_$i.dat; do\n"
        f"  {sys.executable} use.py out/$n out/$n.done\ndone; done\n"
    )
    tracehint(tmp_path, *RUN)
    subprocess.run(["rm", "-r", "out"], cwd=tmp_path, check=True)
    said = tracehint(tmp_path, *RUN)
    assert "for the first names of files that are renamed" in said
    for name in ("part_0.bin", "part_5.bin", "side_3.dat"):
        assert os.listxattr(tmp_path / "out" / name), said
    rows = read_bundle(tmp_path / ".tracehint/runs/0002.trace").tables["settings"].to_pylist()
    assert {r["state"] for r in rows} == {"set"}


@pytest.mark.parametrize("clean", ["", 'env -i PATH="$PATH" '], ids=["same", "clean"])
@pytest.mark.parametrize("collector", ["strace", "preload"])
def test_a_run_inside_a_recorded_one_leaves_nothing_behind(
    tmp_path: Path, collector: str, clean: str
) -> None:
    inner = f"{clean}{sys.executable} -m tracehint run -- sh -c 'echo 1 >x; exit 3'; exit $?"
    words = ("record", "--collector", collector, "-o", "r.trace", "--", "sh", "-c", inner)
    assert "is already recorded" in tracehint(tmp_path, *words, status=3)
    assert (tmp_path / "x").read_text() == "1\n"
    assert not list((tmp_path / ".tracehint/runs").iterdir())


def test_files_of_static_programs_are_said_to_be_missed(tmp_path: Path) -> None:
    source = 'int main(void) { return open("s.txt", O_CREAT | O_WRONLY, 0644) < 0; }'
    (tmp_path / "p.c").write_text(f"#include <fcntl.h>\n{source}\n")
    built = subprocess.run(["gcc", "-static", "-o", "p", "p.c"], cwd=tmp_path, capture_output=True)
    if built.returncode:
        pytest.skip("no static C library")
    hints = save(tmp_path, rule("{name}.txt", DP="local"))
    (tmp_path / "script").write_text(f"#!{tmp_path}/p\n")  # the kernel starts p as its interpreter
    (tmp_path / "script").chmod(0o755)
    words = ("run", "--hints", hints, "--collector", "strace", "-o", "r.trace", "--")
    said = tracehint(tmp_path, *words, "sh", "-c", "echo 1 >a.txt; ./script")
    assert "hints set on 1 of 2 matching files" in said
    assert "its creation was not recorded by script" in said


MAKEFLOW = (
    "".join(
        f"part_{i}.bin:\n\thead -c 300000 /dev/zero >part_{i}.bin\n"
        f"next_{i}.bin: part_{i}.bin\n\ttr '\\0' x <part_{i}.bin >next_{i}.bin\n"
        for i in range(4)
    )
    + f"all.bin: {' '.join(f'next_{i}.bin' for i in range(4))}\n\tcat next_*.bin >all.bin\n"
)
SNAKEFILE = """
rule all:
    input: "all.bin"
rule part:
    output: "part_{n}.bin"
    shell: "head -c 300000 /dev/zero >{output}"
rule next:
    input: "part_{n}.bin"
    output: "next_{n}.bin"
    shell: "tr 0 x <{input} >{output}"
rule join:
    input: expand("next_{n}.bin", n=range(4))
    output: "all.bin"
    shell: "cat {input} >{output}"
"""


@pytest.mark.engine
@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("my.mf", MAKEFLOW, "makeflow my.mf"),
        # also covered by test_run_every_engine.py
        pytest.param(
            "Snakefile", SNAKEFILE, f"{sys.executable} -m snakemake -c2", marks=pytest.mark.full
        ),
    ],
)
def test_a_new_user_types_what_the_readme_says(
    tmp_path: Path, name: str, text: str, command: str
) -> None:
    """One command installs tracehint; after two more, the workflow has its hints."""
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    typed = re.findall(r"^tracehint (run -- CMD)", readme, re.MULTILINE)
    assert len(typed) == 2
    for words in typed:
        for old in tmp_path.glob("*.bin*"):
            old.unlink()
        for old in tmp_path.glob("my.mf.*"):
            old.unlink()
        (tmp_path / name).write_text(text)
        said = tracehint(tmp_path, *words.replace("CMD", command).split())
    assert "matching files" in said
    hinted = [p.name for p in tmp_path.glob("*.bin") if os.listxattr(p)]
    assert {"part_0.bin", "next_3.bin"} <= set(hinted), said


def test_hints_that_make_a_run_slower_are_dropped(tmp_path: Path) -> None:
    """The third run has no hints, and a second slower run confirms it. Only runs with the same
    command, number of tasks and collector are compared."""
    command = ("make", "all")
    plain = KnownRun(1, command, 0, 50.0, False, tasks=9)
    hinted = replace(plain, number=2, seconds=54.0, hinted=True)

    def slower(*runs: KnownRun) -> Slower | None:
        return ProjectState(tmp_path, runs).slower(command)

    once, proven = (Slower(54.0, 50.0, by_graph=False, proven=known) for known in (False, True))
    assert slower(plain, hinted) == once
    assert slower(replace(plain, store="xattr"), hinted) == replace(once, by_graph=True)
    assert slower(plain, hinted, plain) is None
    assert slower(plain, hinted, plain, hinted) == proven
    assert slower(plain, hinted, plain, hinted, plain) == proven
    assert slower(plain, hinted, plain, replace(hinted, seconds=49.0)) is None
    for other in ({"tasks": 8}, {"collector": "strace"}, {"status": 1},
                  {"command": ("make", "all", "-j2")}):  # fmt: skip  # a table
        assert slower(plain, replace(hinted, **other)) is None
    bare = {"recorded": False, "collector": ""}  # without recording, a run has less overhead
    assert slower(plain, replace(hinted, **bare)) == once
    assert slower(replace(plain, **bare), hinted) is None
    assert slower(plain) is None


def test_status_reports_what_the_next_run_is_like(tmp_path: Path) -> None:
    (tmp_path / "runs/0001.trace").mkdir(parents=True)
    plain = KnownRun(1, ("make", "all"), 0, 50.0, False)
    hinted = replace(plain, number=2, seconds=54.0, hinted=True)

    def last_line(*runs: KnownRun) -> str:
        return _text(ProjectState(tmp_path, runs)).splitlines()[-1]

    assert last_line(plain) == "the next run of make has hints from 1 run"
    assert last_line(plain, hinted).endswith(
        "without learned hints: 54.0 s with them, 50.0 s without"
    )
    alone = replace(plain, number=3, recorded=False)
    assert "like the last one: not recorded" in last_line(plain, hinted, alone)


def test_what_tracehint_takes_itself_counts(tmp_path: Path) -> None:
    """Overhead before and after the command counts in both runs, beyond the usual variation."""
    plain = KnownRun(1, ("make",), 0, 50.0, False)
    hinted = replace(plain, number=2, seconds=48.0, around=OWN_S + 6, hinted=True)
    assert ProjectState(tmp_path, (plain, hinted)).slower(("make",)) == Slower(
        54.0, 50.0, by_graph=False, proven=False
    )
    for runs in (
        (replace(plain, around=OWN_S + 6), hinted),
        (plain, replace(hinted, around=OWN_S)),
    ):
        assert ProjectState(tmp_path, runs).slower(("make",)) is None


@pytest.mark.parametrize(
    ("plain", "hinted"), [((50.0,), 53.0), ((50.0, 60.0), 65.0), ((0.3,), 0.5), ((0.3,), 2.2)]
)
def test_differences_within_the_noise_drop_nothing(
    tmp_path: Path, plain: tuple[float, ...], hinted: float
) -> None:
    """Noise of the machine, of few runs, and of small numbers."""
    run = KnownRun(1, ("make",), 0, 0.0, False)
    runs = [replace(run, seconds=seconds) for seconds in plain]
    state = ProjectState(tmp_path, (*runs, replace(run, seconds=hinted, hinted=True)))
    assert state.slower(("make",)) is None


def test_a_run_of_placed_tasks_teaches_no_rules(tmp_path: Path) -> None:
    run = KnownRun(1, ("make",), 0, 1.0, True)
    state = ProjectState(tmp_path, (run, replace(run, number=2, placed=True)))
    for known in state.runs:
        state.bundle(known).mkdir(parents=True)
    assert [known.number for known in state.usable(("make",))] == [1]


def test_of_placed_runs_the_last_recordings_are_kept(tmp_path: Path) -> None:
    run = KnownRun(1, ("make",), 0, 1.0, False)
    for number in range(1, KEPT + 4):
        claim(tmp_path)
        state = add_run(tmp_path, replace(run, number=number, placed=number > 1))
    left = [known.number for known in state.runs if state.bundle(known).is_dir()]
    assert left == [1, *range(4, KEPT + 4)]


def test_a_workflow_with_other_tasks_is_recorded_again(tmp_path: Path) -> None:
    """It is recorded once, and that recording is learned from."""
    run = KnownRun(1, ("make",), 0, 1.0, False)
    other_tasks = replace(run, number=2, hinted=True, placed=True, unrecognised=True)
    other = replace(other_tasks, command=("makeflow",))
    recorded = replace(run, number=3)
    for runs, again in (((run, other_tasks), True), ((run, other_tasks, recorded), False),
                        ((run, other), False)):  # fmt: skip  # a table
        state = ProjectState(tmp_path, runs)
        assert state.needs_recording(("make",)) == again
    state = ProjectState(tmp_path, (run, other_tasks))
    state.bundle(run).mkdir(parents=True)
    assert learn_hints(state, ("make",), None, ()) is None
    assert "is recorded again" in _text(state)


@pytest.mark.parametrize(
    "command",
    [
        "salloc -N 5 makeflow my.mf",
        "salloc -N5 --exclusive env A=1 makeflow my.mf",
        "makeflow my.mf",
    ],
)
def test_what_starts_a_workflow_is_not_its_name(command: str) -> None:
    assert workflow_name(command.split()) == "makeflow"


def test_a_batch_system_without_the_preload_library_stops_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on other machines than x86-64: the jobs are not recorded, the command runs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sbatch").write_text("#!/bin/sh\n")
    (programs / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr("tracehint.collectors.preload.library.LIBRARY", tmp_path / "none.so")
    monkeypatch.chdir(tmp_path)
    done = inside("run", "--collector", "strace", "--", "touch", "made", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made").exists()
    assert (
        "jobs of a batch system are not recorded: the preload library is not built" in done.stderr
    )
