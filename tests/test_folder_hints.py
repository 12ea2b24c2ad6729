"""Hints on directories: in the hint file, by `predict --pins`, and on the stores."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.cli import inside
from tests.support.hints import json_schema, parsed, rule
from tests.support.run_model import RunBuilder
from tests.test_predict_metadata import cluster
from tracehint.adapters.paths import Paths
from tracehint.adapters.plan import build_plan
from tracehint.adapters.stores.cephfs import CephFs
from tracehint.adapters.stores.lustre import lustre
from tracehint.adapters.stores.places import Places, load_places
from tracehint.adapters.stores.registry import open_store
from tracehint.errors import InputError
from tracehint.hintgen.hints.hintfile import to_json
from tracehint.hintgen.hints.model import FolderHints, Formula, Hint, HintFile, Rule

SITES = Places(sites={"lyon": "1", "paris": "0"})
TOLD = (FolderHints("proj", {"Metadata": "lyon"}),)


def told(*folders: FolderHints) -> dict[str, Any]:
    """Return a hint file for these directories as JSON."""
    return json.loads(json.dumps(to_json(HintFile((), {}, (), directories=folders))))


def test_a_hint_file_keeps_what_directories_are_told() -> None:
    data = told(*TOLD, FolderHints("a/b", {"Metadata": "paris", "DP": "local"}))
    jsonschema.validate(data, json_schema("hints"))
    assert json.loads(json.dumps(to_json(parsed(data)))) == data
    assert "directories" not in told()


@pytest.mark.parametrize(
    "entry",
    [
        {"path": "../x", "hints": {"Metadata": "a"}},
        {"path": "/x", "hints": {"Metadata": "a"}},
        {"path": "", "hints": {"Metadata": "a"}},
        {"path": "x", "hints": {}},
        {"path": "x", "hints": {"Metadata": "a b"}},
        {"path": "x", "hints": {"Metadata": 3}},
        {"path": "x", "hints": {"Other": "a"}},
        {"path": "x\\x00y", "hints": {"Metadata": "a"}},
        {"path": 7, "hints": {"Metadata": "a"}},
    ],
)
def test_a_hostile_one_is_refused(entry: dict[str, Any]) -> None:
    data = told(*TOLD)
    with pytest.raises(InputError):
        parsed({**data, "directories": [entry]})
    with pytest.raises(InputError, match="twice"):
        parsed({**data, "directories": data["directories"] * 2})


def test_directories_have_their_own_hints_beside_what_their_files_say() -> None:
    rules = (rule("proj/{n}.dat", Replication=2),)
    hints = HintFile((), {}, rules, directories=(*TOLD, FolderHints("odd", {"Metadata": "paris"})))
    plan = build_plan(hints, Paths(files=[b"proj/1.dat", b"proj/2.dat"]))
    folders = {t.path: dict(t.hints) for t in plan.targets if t.kind == "directory"}
    assert folders == {
        b"odd": {"Metadata": "paris"},
        b"proj": {"Metadata": "lyon", "Replication": "2"},
    }
    assert all(t.path != b"odd" for t in plan.targets if t.kind == "file")
    assert build_plan(hints, Paths(files=[]), directories=False).targets == []


def test_cephfs_pins_to_the_rank_of_the_site() -> None:
    settings, gaps = CephFs(SITES).translate({"Metadata": "lyon"}, "directory")
    assert [(s.key, s.value) for s in settings] == [("ceph.dir.pin", b"1")] and not gaps
    for kind, places in (("file", SITES), ("directory", Places())):
        settings, gaps = CephFs(places).translate({"Metadata": "lyon"}, kind)  # type: ignore[arg-type]
        assert not settings and gaps[0].level == "none"


def test_lustre_moves_a_directory_to_the_mdt_of_the_site() -> None:
    store = lustre(SITES)
    settings, gaps = store.translate({"Metadata": "lyon", "Replication": "2"}, "directory")
    by_key = {s.key: s for s in settings}
    assert not [g for g in gaps if g.hint == "Metadata"]
    assert store.argv(by_key["lustre:metadata"], "d x") == ["lfs", "migrate", "-m", "1", "d x"]
    layout = store.argv(by_key["lustre:layout"], "d")
    assert layout[:2] == ["lfs", "setstripe"] and "-m" not in layout
    command = store.commands["metadata"]
    assert store.words_in(command, "1\n") == {"mdt_index": "1"}
    assert store.words_in(command, "lmv_stripe_count: 1\n") == {}
    assert store.translate({"Metadata": "lyon"}, "file")[0] == []
    assert "sites" in lustre(Places()).translate({"Metadata": "lyon"}, "directory")[1][0].reason


@pytest.mark.parametrize("name", ["moosefs", "hdfs", "orangefs", "beegfs7"])
def test_stores_with_one_metadata_service_say_so(name: str) -> None:
    settings, gaps = open_store(name).translate({"Metadata": "lyon"}, "directory")
    assert not settings and gaps[0].level == "none" and gaps[0].reason


ODD_SITES = ("3", "{ a = 1 }", '{ a = "x" }', '{ "a b" = "1" }', '{ a = "-1" }', '{ a = "01" }')


@pytest.mark.parametrize("text", ODD_SITES)
def test_a_map_with_odd_sites_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "map.toml").write_text(f"sites = {text}")
    with pytest.raises(InputError):
        load_places(tmp_path / "map.toml")


def recorded(folder: Path, site: str, operations: int) -> Path:
    """Return a run of one host at a site, with this many operations in the site's own directory."""
    build = RunBuilder(host=f"node-{site}")
    build.manifest.hosts[0].site = site
    driver = build.process(["sh", "wf.sh"])
    maker = build.process([f"make_{site}"], parent=driver, start=1, end=4)
    made = build.file(f"/data/{site}/x", existed=False, size=1000)
    build.write(maker, made, 0, 1000, at=3)
    own = f"/data/{site}".encode()
    build._add("metadata_ops", proc=maker, dir=own, op="mkdir", count=operations, errors=0)
    return build.bundle(folder / site).path


def test_from_a_recorded_run_to_attributes_of_directories(tmp_path: Path) -> None:
    parts = [recorded(tmp_path, "a", 90), recorded(tmp_path, "b", 50)]
    assert inside("merge", *parts, "-o", "run.trace", cwd=tmp_path).returncode == 0
    (tmp_path / "sites.toml").write_text(cluster())
    words = ("predict", "run.trace", "--cluster", "sites.toml")
    done = inside(*words, "--metadata", "centralised", "--pins", "pins.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    hints = json.loads((tmp_path / "pins.json").read_text())
    assert hints["directories"] == [{"path": "b", "hints": {"Metadata": "b"}}]
    (tmp_path / "data" / "b").mkdir(parents=True)
    root = ["--as-root"] if os.geteuid() == 0 else []
    done = inside("apply", "pins.json", "data", "--store", "xattr", *root, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert os.getxattr(tmp_path / "data" / "b", "user.Metadata") == b"b"
    assert inside(*words, "--pins", "more.json", cwd=tmp_path).returncode == 2
    again = inside(*words, "--metadata", "all", "--pins", "pins.json", cwd=tmp_path)
    assert again.returncode == 2 and "pins.json" in again.stderr


def test_a_run_at_one_place_needs_no_pins(tmp_path: Path) -> None:
    run = recorded(tmp_path, "b", 50)
    (tmp_path / "sites.toml").write_text(cluster())
    words = ("predict", run, "--cluster", "sites.toml", "--metadata", "centralised")
    done = inside(*words, "--pins", "pins.json", cwd=tmp_path)
    assert done.returncode == 0 and "No directory" in done.stderr
    assert json.loads((tmp_path / "pins.json").read_text())["rules"] == []


# Defaults derived from files --------------------------------------------------------------------


def defaults(*rules: Rule, files: tuple[bytes, ...] = ()) -> dict[bytes, dict[str, str]]:
    """Return the hints of directories that follow from these rules and known files."""
    plan = build_plan(HintFile((), {}, rules), Paths(files=list(files)))
    return {t.path: dict(t.hints) for t in plan.targets if t.kind == "directory"}


def test_one_file_is_no_reason_for_a_hint_on_the_launch_directory() -> None:
    """All files created there would get it: logs of the engine, later results."""
    one, other = rule("one.dat", DP="local"), rule("two.dat", DP="local")
    assert defaults(one) == defaults(one, files=(b"one.dat",)) == {}
    assert defaults(one, other, files=(b"one.dat", b"two.dat")) == {b"": {"DP": "local"}}
    assert defaults(rule("part_{n}", DP="local")) == {b"": {"DP": "local"}}
    assert defaults(rule("out/one.dat", DP="local")) == {b"out": {"DP": "local"}}


def test_inputs_are_no_reason_for_a_hint_on_what_is_created_beside_them() -> None:
    read = rule("in_{n}.dat", producer=None, DP="local")
    assert defaults(read, files=(b"in_1.dat", b"in_2.dat", b"in_3.dat")) == {}


def test_a_hint_that_qualifies_another_is_never_set_alone() -> None:
    """Files with different numbers of copies have only the semantics in common."""
    two = rule("d/two_{n}", Replication=2, ReplicationSemantics="optimistic")
    three = rule("d/three_{n}", Replication=3, ReplicationSemantics="optimistic")
    assert defaults(two, three, files=(b"d/two_1", b"d/three_1")) == {}
    assert defaults(two, files=(b"d/two_1",)) == {
        b"d": {"Replication": "2", "ReplicationSemantics": "optimistic"}
    }
    scaled = Hint("Replication", "2", "create", Formula(fn="replicas", per=3))
    plain = Hint("ReplicationSemantics", "optimistic", "create")
    assert defaults(rule("d/x_{n}", hints=(scaled, plain))) == {}
