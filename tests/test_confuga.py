"""Confuga: file lists from a recorded run, the threshold, and both on a real Confuga."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.confuga import Confuga, confuga, missing
from tracehint.adapters.engines.confuga import pull_threshold
from tracehint.adapters.engines.makeflow.file_lists import Lists, Observed, lists_of, with_lists
from tracehint.adapters.engines.makeflow.workflow import Workflow, read_workflow

MIB = 1 << 20
READERS = 10
DB, UNUSED = 16 * MIB, 8 * MIB

WORKFLOW = "".join(
    f"out/{i}.txt: in/{i}.bin db.bin unused.bin\n"
    f"\tmkdir -p out && sleep 2 && cat in/{i}.bin db.bin | wc -c > out/{i}.txt\n"
    for i in range(READERS)
)


def _observed(**more: object) -> Observed:
    """Tasks 0 and 1 of type `t`: 0 reads a_1 and db, 1 reads a_2, no task reads b_1."""
    given: dict[str, object] = {
        "types": {0: "t", 1: "t"},
        "makers": {b"o_1": 0, b"o_2": 1},
        "read": {0: frozenset({b"a_1", b"db", b"more"}), 1: frozenset({b"a_2"})},
        "made": {0: frozenset({b"o_1"}), 1: frozenset({b"o_2"})},
        "shapes": {"t": frozenset({"a_#", "a_#.*", "db", "db.*", "ref.*", "more"})},
        "sizes": {b"a_1": 10, b"empty": 0, b"b_1": 100},
    }
    return Observed(**{**given, **more})  # type: ignore[arg-type]


def _lists(
    tmp_path: Path, header: str, command: str = "run", **more: object
) -> tuple[Workflow, Lists]:
    path = tmp_path / "w.makeflow"
    path.write_text(f"# kept\n{header}\n\tLOCAL {command}\n")
    workflow = read_workflow(path)
    return workflow, lists_of(workflow, _observed(**more))[0]


@pytest.mark.parametrize(
    ("declared", "command", "kept"),
    [
        ("a_1 b_1", "run", True),  # b_1: no task of the type opened a name like this
        ("a_1 a_7", "run", False),  # another task of the type read a name like a_7
        ("a_1 b_1", "run b_1", False),  # the command names it
        ("a_1 empty", "run", False),  # an empty file may only express an order
        ("a_1 ref.nsq", "run", False),  # another file of its set was opened
        ("a_1 /usr/lib/x", "run", False),  # outside the data directory
    ],
)
def test_only_what_no_task_of_the_type_ever_opened_goes(
    tmp_path: Path, declared: str, command: str, kept: bool
) -> None:
    _, mine = _lists(tmp_path, f"o_1: {declared}", command)
    assert bool(mine.dropped) == kept
    assert b"a_1" in mine.inputs


def test_a_rule_that_was_not_recorded_stays_as_it_is(tmp_path: Path) -> None:
    workflow, mine = _lists(tmp_path, "new: a_1 b_1")
    assert not mine.seen
    assert with_lists(workflow, [mine]) == (workflow.text.encode(), 0)


def test_what_was_read_and_not_declared_comes_in(tmp_path: Path) -> None:
    workflow, mine = _lists(tmp_path, "o_1: a_1 b_1")
    assert mine.added == (b"db", b"more")
    text, left = with_lists(workflow, [mine])
    assert text == b"# kept\no_1: a_1 db more\n\tLOCAL run\n"
    assert left == 0


@pytest.mark.parametrize("odd", [b"a b", b"x;y", b"$(id)", b"q'", b"new\nline", b"#c", b"a->b"])
def test_an_odd_name_is_never_written_into_a_rule(tmp_path: Path, odd: bytes) -> None:
    read = {0: frozenset({b"a_1", odd}), 1: frozenset[bytes]()}
    workflow, mine = _lists(tmp_path, "o_1: a_1 b_1", read=read)
    text, left = with_lists(workflow, [mine])
    if odd == b"a->b":
        assert b"->" not in text or left == 1
    assert left == 1
    assert text == workflow.text.encode()


def test_a_renamed_file_leaves_its_rule_alone(tmp_path: Path) -> None:
    workflow, mine = _lists(tmp_path, "o_1: a_1->x b_1")
    assert with_lists(workflow, [mine]) == (workflow.text.encode(), 1)


def test_lists_of_a_json_workflow(tmp_path: Path) -> None:
    rule = {"command": "run", "inputs": [{"dag_name": "a_1"}, "b_1"], "outputs": ["o_1"], "x": 1}
    (tmp_path / "w.json").write_text(json.dumps({"rules": [rule], "define": {}}))
    workflow = read_workflow(tmp_path / "w.json")
    text, left = with_lists(workflow, lists_of(workflow, _observed()))
    [made] = json.loads(text)["rules"]
    assert left == 0
    assert made == {**rule, "inputs": [{"dag_name": "a_1"}, "db", "more"]}


@pytest.mark.parametrize(
    ("private", "shared", "threshold"),
    [
        ([100_000, 300_000], [4_000_000, 64_000_000], 2 * MIB),
        ([3_000_000], [4_000_000], 4_000_000),
        ([9_000_000], [4_000_000], 2 * MIB),
        ([], [], None),
        ([5], [100], None),
        ([5], [100, 1 << 20], 1 << 20),
    ],
)
def test_the_threshold_lies_between_private_and_shared_inputs(
    private: list[int], shared: list[int], threshold: int | None
) -> None:
    assert pull_threshold(private, shared) == threshold
    if threshold is not None:
        assert all(size >= threshold for size in shared if size >= 4096)


def _record(folder: Path) -> None:
    """Write the workflow's files, record one run and learn its hints."""
    (folder / "in").mkdir(parents=True)
    for i in range(READERS):
        (folder / "in" / f"{i}.bin").write_bytes(os.urandom(30_000 + i))
    (folder / "db.bin").write_bytes(os.urandom(DB))
    (folder / "unused.bin").write_bytes(os.urandom(UNUSED))
    (folder / "w.makeflow").write_text(WORKFLOW)
    words = ["record", "--collector", "strace", "-o", "r.trace", "--", "makeflow", "-j", "10"]
    words.append("w.makeflow")
    for command in (words, ["hints", "r.trace", "-o", "h.json"]):
        done = tracehint(*command, cwd=folder)
        assert done.returncode == 0, done.stderr


def _emit(folder: Path, *more: str) -> str:
    words = ["emit", "h.json", "--workflow-engine", "confuga", "w.makeflow", "--like", "r.trace"]
    words += ["--shared-dir", "/wf", "-o", "planned.makeflow", *more]
    done = tracehint(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the workflow, its recorded run, its hints and the planned workflow."""
    if missing():
        pytest.skip(missing())
    folder = tmp_path_factory.mktemp("recorded")
    _record(folder)
    _emit(folder)
    return folder


@pytest.mark.slow
@pytest.mark.engine
def test_the_lists_of_a_recorded_run(recorded: Path) -> None:
    text = (recorded / "planned.makeflow").read_text()
    assert "unused.bin" not in text
    assert text.count("db.bin | wc") == READERS
    assert text == WORKFLOW.replace(" unused.bin", "")
    jobs = json.loads((recorded / "planned.makeflow.jobs.json").read_text())
    assert len(jobs) == READERS
    assert [(f["serv_path"], f["type"]) for f in jobs[3]["files"]] == [
        ("/wf/in/3.bin", "INPUT"),
        ("/wf/db.bin", "INPUT"),
        ("/wf/out/3.txt", "OUTPUT"),
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Confuga]:
    """A running Confuga with its default threshold, 128 MB."""
    if missing():
        pytest.skip(missing())
    with confuga(tmp_path_factory.mktemp("confuga")) as running:
        yield running


def _upload(store: Confuga, folder: Path, where: str) -> Path:
    """Put inputs with random content into the store, as Confuga stores equal files once. Return a
    folder of the store's user for running Makeflow."""
    for name in ("", "/in", "/out"):
        store.chirp("mkdir", where + name)
    fresh = store.folder / "fresh"
    for name in ("db.bin", "unused.bin", *(f"in/{i}.bin" for i in range(READERS))):
        fresh.write_bytes(os.urandom((folder / name).stat().st_size))
        store.put(fresh, f"{where}/{name}")
    own = store.own(where.strip("/"))
    for name in ("w.makeflow", "planned.makeflow"):
        (own / name).write_bytes((folder / name).read_bytes())
    return own


def _moved(store: Confuga, own: Path, workflow: str, where: str) -> tuple[int, int]:
    """Return the bytes that a first run and its repetition send over the links."""
    found = []
    for _ in range(2):
        before = store.bed.received()
        store.makeflow(own, workflow, where)
        found.append(store.bed.received() - before)
    return found[0], found[1]


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.store
def test_the_planned_run_moves_the_shared_file_once(store: Confuga, recorded: Path) -> None:
    """With the lists, then with the threshold too; two runs each.

    No lower bound is checked: on a busy machine the head sends one job after the other, all to
    the node that has the file, and no data are moved at all.
    """
    other = 2 * MIB  # private inputs, and messages between servers
    remark = next(
        line for line in _emit(recorded, "--force").splitlines() if "pull-threshold" in line
    )
    threshold = int(remark.partition("pull-threshold=")[2].split(";")[0])
    assert 30_010 < threshold <= DB
    own = _upload(store, recorded, "/lists")
    listed = _moved(store, own, "planned.makeflow", "/lists")
    assert max(listed) <= READERS * DB * 1.05 + other
    asked = "SELECT count(*) FROM JobFile WHERE serv_path LIKE '/lists%/{}'"
    asks = {n: store.ask("headcwd/.__job.db", asked.format(n)) for n in ("db.bin", "unused.bin")}
    assert asks == {"db.bin": 2 * READERS, "unused.bin": 0}
    store.head(f"&pull-threshold={threshold}")
    own = _upload(store, recorded, "/planned")
    first, later = _moved(store, own, "planned.makeflow", "/planned")
    assert first <= 4 * DB * 1.05 + other, "once to each node that does not have it"
    assert later <= other, "it stayed there"


@pytest.mark.slow
@pytest.mark.engine
def test_as_many_jobs_as_nodes_are_told(recorded: Path) -> None:
    """More jobs would wait at the head for any node, even one whose files another job reads."""
    told = _emit(recorded, "--nodes", "5", "--force")
    assert "makeflow -T chirp -J 5 --working-dir=chirp://HEAD:PORT/wf planned.makeflow" in told
    assert "makeflow -T chirp -J NODES " in _emit(recorded, "--force")


@pytest.mark.slow
@pytest.mark.store
def test_the_server_takes_the_json_jobs(store: Confuga, recorded: Path) -> None:
    own = _upload(store, recorded, "/json")
    jobs = json.loads((recorded / "planned.makeflow.jobs.json").read_text())
    text = json.dumps(jobs[4]).replace('"/wf/', '"/json/')
    number = store.chirp("job_create", text).split()[-1]
    store.chirp("job_commit", f"[{number}]")
    waited = store.chirp("job_wait", number, "60")
    assert '"exit_code":0' in waited.replace(" ", ""), waited
    assert store.chirp("cat", "/json/out/4.txt").strip() == str(30_004 + DB)
    assert own.exists()


@pytest.mark.slow
@pytest.mark.store
def test_setrep_of_the_script_is_what_the_head_keeps(store: Confuga, tmp_path: Path) -> None:
    from tests.support.hints import rule, save

    size = 777_777
    (tmp_path / "many.bin").write_bytes(os.urandom(size))
    store.put(tmp_path / "many.bin", "/wf/many.bin")
    hints = save(tmp_path, rule("many.bin", producer=None, Replication="3"))
    (tmp_path / "map.toml").write_text(f'server = "{store.server}"\nbase = "/wf"\n')
    words = ["emit", hints, "--store", "confuga", "--map", tmp_path / "map.toml"]
    done = tracehint(*words, "-o", tmp_path / "s.sh")
    assert done.returncode == 0, done.stderr
    assert "not run" not in done.stderr
    script = store.own("scripts")
    for name in ("s.sh", "s.sh.data"):
        (script / name).write_bytes((tmp_path / name).read_bytes())
    asked = f"SELECT minimum_replicas FROM File WHERE size = {size}"
    for more, kept in (([], 3), (["--undo"], 1)):
        ran = store.run("sh", script / "s.sh", *more, cwd=script)
        assert ran.returncode == 0, ran.stderr
        assert store.ask("head/confuga.db", asked) == kept
