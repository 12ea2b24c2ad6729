"""The MooseFS adapter on a real MooseFS: its own tools confirm the settings, which take effect."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT
from tests.support.hints import rule, save
from tests.support.moosefs import Cluster, cluster, missing
from tests.support.patience import until
from tests.support.tagger import build
from tracehint.adapters.engines.tag_table import TagTarget, encode, tag_files
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.place.parts import home_of
from tracehint.adapters.stores.moosefs import MooseFs
from tracehint.adapters.stores.places import Places, load_places
from tracehint.errors import InputError
from tracehint.hintgen.hints.vocabulary import group

TOOL = TRACEHINT
PLACES = 'local = "node_{host}"\ngroups = ["node_A", "node_B", "node_C"]\n'


def test_a_goal_is_the_class_of_that_name() -> None:
    store = MooseFs(Places())
    settings, gaps = store.translate({"Replication": "3"}, "file")
    assert [(s.key, s.value) for s in settings] == [("mfs:sclass", b"3")]
    assert gaps == []
    settings, gaps = store.translate({"Replication": "40"}, "file")
    assert settings[0].value == b"9"
    assert gaps[0].level == "approximate"


def test_copies_decide_where_the_site_names_no_class_for_a_place_with_copies() -> None:
    """Regression: a plan's file lost its five copies because its place took precedence."""
    hints = {"DP": "collocation|part-4", "Replication": "5"}
    settings, gaps = MooseFs(Places("", ("node_A",))).translate(hints, "file")
    assert [s.value for s in settings] == [b"5"]
    assert [(g.hint, g.level) for g in gaps] == [("DP=collocation", "none")]
    both = Places("node_{host}", ("node_A",), with_copies="{place}_{copies}")
    settings, gaps = MooseFs(both).translate(hints, "file")
    assert [s.value for s in settings] == [b"node_A_5"]
    assert gaps == []
    settings, _ = MooseFs(both).translate({"DP": "collocation|x", "Replication": "1"}, "file")
    assert [s.value for s in settings] == [b"node_A"]
    settings, _ = MooseFs(both, late=True).translate({"DP": "local", "Replication": "2"}, "file")
    assert [s.value for s in settings] == [b"node_@host_2"]


@pytest.mark.parametrize(
    "name", ['"x"', '"{place}"', '"{place} {copies}"', '"{place}/{copies}"', "3"]
)
def test_a_pattern_of_classes_is_a_plain_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "map.toml").write_text(f"with_copies = {name}\n")
    with pytest.raises(InputError, match="with_copies"):
        load_places(tmp_path / "map.toml")


def test_groups_keep_together_and_spread() -> None:
    places = Places("", tuple(f"node_{x}" for x in "ABCDE"))
    assert places.of_group("sum") == places.of_group("sum")
    assert {places.of_group(f"g{i}") for i in range(100)} == set(places.groups)


def test_files_of_a_plans_part_lie_where_its_tasks_run() -> None:
    hosts = [Host(name=x, start=("true",)) for x in "ABCDE"]
    places = Places("", tuple(f"node_{x}" for x in "ABCDE"))
    for part in (*range(12), 10**8):
        assert places.of_group(group(part)) == f"node_{home_of(part, hosts).name}"
    for name in ("part-", "part--1", "part-x", "part-\u0663", "3", "part-" + "9" * 5000):
        assert places.of_group(name) in places.groups, "a name like any other"


def test_any_nodes_place_is_local() -> None:
    assert Places("node_{host}").is_local(b"node_x1.y")
    assert not Places("node_{host}").is_local(b"1")
    assert not Places("node_{host}").is_local(b"node_")
    assert not Places("node.{host}").is_local(b"node_x")
    assert not Places().is_local(b"")
    assert Places("here").is_local(b"here")


def test_without_a_map_placement_is_a_gap() -> None:
    settings, gaps = MooseFs(Places()).translate({"DP": "local"}, "file")
    assert settings == []
    assert "--map" in gaps[0].reason


@pytest.mark.parametrize(
    "text",
    [
        "local = 3",
        'groups = ["a b"]',
        'groups = "x"',
        "x = 1",
        "[",
        'groups = ["-K"]',
        'local = "$(id)"',
    ],
)
def test_a_wrong_map_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(InputError):
        load_places(tmp_path / "m.toml")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running MooseFS."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with cluster(tmp_path_factory.mktemp("mfs")) as started:
        yield started


def tracehint(store: Cluster, *arguments: str | Path, code: int = 0) -> str:
    """Run tracehint where the store is reachable and return its standard output."""
    done = store.run(*TOOL, *map(str, arguments))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


RULES = (
    rule("table.txt", producer=None, Replication=2),
    rule("parts/p_{n}.dat", DP="collocation|sum"),
)


@pytest.fixture
def work(store: Cluster, tmp_path: Path) -> tuple[Path, list[str | Path]]:
    """A data directory on the store, and the arguments that follow the command's name."""
    data = store.mount / tmp_path.name
    (data / "parts").mkdir(parents=True)
    (data / "table.txt").write_text("x")
    for i in range(3):
        (data / "parts" / f"p_{i}.dat").touch()
    (tmp_path / "map.toml").write_text(PLACES)
    hints = save(tmp_path, *RULES)
    return data, [hints, "--store", "moosefs", "--map", tmp_path / "map.toml", data]


def storage_class(store: Cluster, path: Path) -> str:
    """Return the storage class that MooseFS's own tool prints."""
    return store.run("mfsgetsclass", path).stdout.strip().rpartition(": ")[2].strip("'")


def nodes(store: Cluster, path: Path) -> set[str]:
    """Return the addresses of the servers that hold the file, from `locate`."""
    found = json.loads(tracehint(store, "locate", path, "--store", "moosefs", "--format", "json"))
    row = found["files"][0]
    assert not row["nodes"] or row["detail"]["chunks"] == 1, "small files"
    return set(row["nodes"])


@pytest.mark.slow
@pytest.mark.store
class TestRealStore:
    """Tests that share one running cluster."""

    def test_apply_verify_undo(self, store: Cluster, work: tuple[Path, list[str | Path]]) -> None:
        data, arguments = work
        before = storage_class(store, data / "parts" / "p_0.dat")
        tracehint(store, "verify", *arguments, code=1)
        tracehint(store, "apply", *arguments, "--as-root")
        group = storage_class(store, data / "parts" / "p_0.dat")
        assert group in ("node_A", "node_B", "node_C")
        assert storage_class(store, data / "parts") == group
        assert storage_class(store, data / "table.txt") == "2"
        tracehint(store, "verify", *arguments)
        tracehint(store, "apply", *arguments, "--as-root", "--undo")
        assert storage_class(store, data / "parts" / "p_0.dat") == before
        assert storage_class(store, data / "parts") == before

    def test_the_hints_act(self, store: Cluster, work: tuple[Path, list[str | Path]]) -> None:
        data, arguments = work
        tracehint(store, "apply", *arguments, "--as-root")
        group = storage_class(store, data / "parts" / "p_0.dat")
        server = store.servers[group[-1]]
        for i in range(5):  # two of them are new: the directory's default decides their placement
            (data / "parts" / f"p_{i}.dat").write_bytes(b"x" * 100_000)
            assert nodes(store, data / "parts" / f"p_{i}.dat") == {server}
        (data / "table.txt").write_bytes(b"x" * 100_000)
        assert len(nodes(store, data / "table.txt")) == 2

    def test_the_script_does_the_same(
        self, store: Cluster, work: tuple[Path, list[str | Path]], tmp_path: Path
    ) -> None:
        data, arguments = work
        way = f"TRACEHINT_TAG={build(tmp_path)}"
        hints, _, _, _, places, _ = arguments
        script = tmp_path / "set.sh"
        tracehint(
            store, "emit", hints, "--store", "moosefs", "--map", places, "--dir", data, "-o", script
        )
        before = storage_class(store, data / "table.txt")
        done = store.run("env", way, "sh", script, data)
        assert (done.returncode, done.stderr) == (0, "")
        tracehint(store, "verify", *arguments)
        again = store.run("env", way, "sh", script, data)
        assert {line.split()[0] for line in again.stdout.splitlines()} == {"unchanged:"}
        assert store.run("env", way, "sh", script, "--undo", data).returncode == 0
        assert storage_class(store, data / "table.txt") == before

    def test_copies_can_be_asked_for_at_any_time(
        self, store: Cluster, work: tuple[Path, list[str | Path]]
    ) -> None:
        """As the table states, Replication acts on existing data, in the background."""
        data, arguments = work
        store.run("mfssetgoal", "1", data / "table.txt")
        (data / "table.txt").write_bytes(b"x" * 100_000)
        assert len(nodes(store, data / "table.txt")) == 1
        tracehint(store, "apply", *arguments, "--as-root")
        until(lambda: len(nodes(store, data / "table.txt")) == 2, "a second copy", every_s=0.5)

    def test_an_unknown_class_is_named(
        self, store: Cluster, work: tuple[Path, list[str | Path]], tmp_path: Path
    ) -> None:
        _, arguments = work
        (tmp_path / "map.toml").write_text('groups = ["nosuch"]')
        done = store.run(*TOOL, "apply", *map(str, arguments), "--as-root")
        assert done.returncode == 2
        assert "Invalid argument" in done.stderr

    def test_local_goes_to_the_host_that_tags(
        self, store: Cluster, work: tuple[Path, list[str | Path]], tmp_path: Path
    ) -> None:
        """`@host` in a script is the node that runs it: a UTS namespace acts as node B."""
        data, _ = work
        hints = save(tmp_path, rule("parts/p_{n}.dat", DP="local"))
        script = tmp_path / "set.sh"
        tracehint(
            store,
            "emit",
            hints,
            "--store",
            "moosefs",
            "--map",
            tmp_path / "map.toml",
            "--dir",
            data,
            "-o",
            script,
        )
        command = f"hostname B.cluster && sh {script} {data}"
        done = store.run("unshare", "--uts", "sh", "-c", command)
        assert done.returncode == 0, done.stderr
        (data / "parts" / "p_0.dat").write_bytes(b"x" * 100_000)
        assert nodes(store, data / "parts" / "p_0.dat") == {store.servers["B"]}
        words = [
            "verify",
            hints,
            "--store",
            "moosefs",
            "--map",
            tmp_path / "map.toml",
            "--no-directories",
            data,
        ]
        tracehint(store, *words)  # on another node than the one that set the tags
        store.run("mfssetgoal", "1", data / "parts" / "p_0.dat")
        assert "expected node_" in tracehint(store, *words, code=1)

    def test_a_task_is_tagged_on_its_own_node(
        self, store: Cluster, work: tuple[Path, list[str | Path]], tmp_path: Path
    ) -> None:
        """Several files need only one call of MooseFS's tool."""
        data, arguments = work
        places = load_places(arguments[4])  # type: ignore[arg-type]
        targets = [
            TagTarget(path=b"parts/new_%d" % i, kind="C", hints={"DP": "local"}) for i in range(70)
        ]
        targets += [
            TagTarget(path=b"parts", kind="D", hints={"DP": "local"}),
            TagTarget(path=b"table.txt", kind="F", hints={"DP": "local"}),
            TagTarget(path=b"twice", kind="K", hints={"Replication": "2"}),
        ]
        table, gaps, count = encode([targets], MooseFs(places))
        assert count == 71
        assert {"not on a directory" in gap.reason or "already" in gap.reason for gap in gaps} == {
            True
        }
        folder = tmp_path / "tags"
        folder.mkdir()
        for path, text in tag_files(folder, table).items():
            assert path is not None
            path.write_bytes(text)
            path.chmod(0o755)
        command = f"hostname B.cluster && cd {data} && {folder}/tag 0 touch parts/new_1"
        done = store.run("unshare", "--uts", "sh", "-c", command)
        assert (done.returncode, done.stderr) == (0, "")
        assert storage_class(store, data / "parts" / "new_1") == "node_B"
        assert storage_class(store, data / "twice") == "2"
        assert [p.name for p in (data / "parts").glob("new_*")] == ["new_1"], "unused are removed"


def test_a_file_of_another_store(tmp_path: Path) -> None:
    if missing():
        pytest.skip(missing())
    (tmp_path / "f").write_text("x")
    command = [*TOOL, "locate", str(tmp_path / "f"), "--store", "moosefs"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "not MFS object" in done.stdout
