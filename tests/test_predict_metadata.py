"""Metadata over sites against times computed by hand: 1 s between two sites, none within; a lookup
takes a registry 0.1 s, an update 0.2 s."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from tests.support.bundles import RunBuilder
from tests.support.cli import inside
from tests.support.hints import json_schema
from tracehint.analyzer.predict.cluster_file import parse_cluster
from tracehint.analyzer.predict.metadata.model import (
    COMPUTING,
    LOOKUP,
    STRATEGIES,
    UPDATE,
    MetaOutcome,
    MetaRun,
    MetaWork,
    Sites,
    sites_of,
)
from tracehint.analyzer.predict.metadata.prediction import directories, predict_metadata
from tracehint.analyzer.predict.metadata.registries import homes, simulate
from tracehint.errors import InputError

Steps = list[tuple[int, int | float]]  # (kind, entry or seconds)
TWO = Sites(("a", "b"), (1, 1), (1, 1), np.array([[0.0, 1.0], [1.0, 0.0]]), 0.1, 0.2, 0.05)


def entries(*wanted: int) -> list[bytes]:
    """Return names whose hash maps to these of two sites."""
    found: list[bytes] = []
    number = 0
    for home in wanted:
        while homes([b"d/e%d" % number], 2)[0] != home:
            number += 1
        found.append(b"d/e%d" % number)
        number += 1
    return found


def made(
    tasks: list[Steps],
    paths: list[bytes],
    sites: list[str],
    *,
    after: list[tuple[int, int]] = (),  # type: ignore[assignment]
    known: list[int] | None = None,
) -> MetaWork:
    steps = [step for task in tasks for step in task]
    order = sorted(after)
    begin = np.searchsorted([a for a, _ in order], np.arange(len(tasks) + 1))
    return MetaWork(
        op_begin=np.cumsum([0, *map(len, tasks)]).astype(np.int64),
        op_kind=np.array([kind for kind, _ in steps], np.int32),
        op_entry=np.array([-1 if k == COMPUTING else int(v) for k, v in steps], np.int32),
        op_seconds=np.array([float(v) if k == COMPUTING else 0.0 for k, v in steps]),
        dep_begin=begin.astype(np.int64),
        dep=np.array([b for _, b in order], np.int32),
        known=np.array(known or [0] * len(paths), np.int32),
        paths=paths,
        site=sites,
        recorded=False,
    )


def under(strategy: str, work: MetaWork, centre: int = 0, sites: Sites = TWO) -> MetaOutcome:
    return simulate(work, sites, [MetaRun(STRATEGIES.index(strategy), centre)])[0]


def test_one_lookup_near_and_far() -> None:
    work = made([[(LOOKUP, 0)]], entries(1), ["a"], known=[1])
    assert under("centralised", work, 0).seconds == pytest.approx(0.1)
    far = under("centralised", work, 1)
    assert far.seconds == pytest.approx(1.1)
    assert far.sites.tolist() == [[0, 0, 1], [1, pytest.approx(0.1), 0]]
    assert under("decentralised", work).seconds == pytest.approx(1.1)
    assert under("replicated", work).seconds == pytest.approx(0.1)
    assert under("decentralised-replica", work).seconds == pytest.approx(0.1)


def test_a_registry_serves_one_after_the_other() -> None:
    work = made([[(UPDATE, 0)], [(UPDATE, 1)]], entries(0, 0), ["a", "b"])
    # the remote one arrives after 0.5 s, when the local one is done
    assert under("centralised", work).seconds == pytest.approx(1.2)
    slow = replace(TWO, update=2.0)
    assert under("centralised", work, sites=slow).seconds == pytest.approx(4.5)


def test_a_local_replica_is_written_twice_and_read_near() -> None:
    chain = [[(UPDATE, 0), (LOOKUP, 0)]]
    work = made(chain, entries(1), ["a"])
    # local 0.2, remote 1 + 0.2, then the local lookup 0.1
    assert under("decentralised-replica", work).seconds == pytest.approx(1.5)
    assert under("decentralised", work).seconds == pytest.approx(1.2 + 1.1)
    other = made([[(UPDATE, 0)], [(LOOKUP, 0)]], entries(1), ["a", "b"], after=[(0, 1)])
    # the home is the reader's own site
    assert under("decentralised-replica", other).seconds == pytest.approx(1.4 + 0.1)


def test_a_replica_is_seen_when_the_agent_has_been_there() -> None:
    work = made([[(UPDATE, 0)], [(LOOKUP, 0)]], entries(0), ["a", "b"], after=[(0, 1)])
    found = under("replicated", work)
    # The agent at a queries a (0.1 s, still empty: the update arrived second and ends at 0.3),
    # queries b and pauses; its next round begins when the first would have ended.
    assert found.seconds > 0.4 and found.stale_mean == found.stale_most > 0
    assert found.stale_mean < 3.5
    assert found.sites[1, 0] == 2  # the lookup queried twice: before the entry existed, and after


def test_what_nobody_made_is_not_waited_for() -> None:
    work = made([[(LOOKUP, 0)]], entries(0), ["b"])
    assert under("replicated", work).seconds == pytest.approx(0.1, abs=0.11)


def test_tasks_start_near_what_they_read_or_where_a_core_is_free() -> None:
    tasks: list[Steps] = [[(UPDATE, 0)], [(LOOKUP, 0)]]
    work = made(tasks, entries(0), ["", ""], after=[(0, 1)])
    near = simulate(work, TWO, [MetaRun(3, near=True)])[0]
    assert near.sites[:, 2].sum() <= 1
    many = made([[(COMPUTING, 1.0)]] * 4, [], [""] * 4)
    assert simulate(many, TWO, [MetaRun(0)])[0].seconds == pytest.approx(2)


def test_equal_seeds_equal_answers() -> None:
    tasks: list[Steps] = [[(UPDATE, i), (COMPUTING, 0.5)] for i in range(40)]
    work = made(tasks, [b"d/%d" % i for i in range(40)], [""] * 40)
    twice = simulate(work, TWO, [MetaRun(2, seed=7), MetaRun(2, seed=7)])
    assert twice[0].seconds == twice[1].seconds and twice[0].operations == 40
    assert np.all(np.diff(twice[0].tenths) >= 0) and twice[0].tenths[-1] <= twice[0].seconds


def test_too_many_operations_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracehint.analyzer.predict.metadata.registries.MOST_OPERATIONS", 1)
    work = made([[(LOOKUP, 0)], [(LOOKUP, 0)]], entries(0), ["", ""])
    with pytest.raises(InputError, match="2 metadata operations are too many"):
        simulate(work, TWO, [MetaRun(0)])


def test_a_cycle_is_an_error() -> None:
    work = made([[(LOOKUP, 0)], [(LOOKUP, 0)]], entries(0), ["", ""], after=[(0, 1), (1, 0)])
    with pytest.raises(InputError, match="2 of 2 tasks wait for each other"):
        simulate(work, TWO, [MetaRun(0)])


CLUSTER = """
[[nodes]]
count = {nodes}
cores = 1
link_mbit = 1000
site = "a"
[[nodes]]
count = {nodes}
cores = 1
link_mbit = 1000
site = "b"
[[sites]]
name = "a"
up_mbit = 100
down_mbit = 100
[[sites]]
name = "b"
up_mbit = 100
down_mbit = 100
{rest}
"""
LINK = '[[links]]\na = "a"\nb = "b"\nround_trip_ms = 80\n'


def cluster(rest: str = LINK, nodes: int = 2) -> str:
    return CLUSTER.format(nodes=nodes, rest=rest)


def test_sites_of_a_cluster_file() -> None:
    found = sites_of(parse_cluster(cluster(), "c"))
    assert found.names == ("a", "b") and found.cores == (2, 2)
    assert found.round_trip.tolist() == [[0.0002, 0.08], [0.08, 0.0002]]
    assert sites_of(parse_cluster(cluster(""), "c")).round_trip[0, 1] == pytest.approx(0.0202)


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ('[[links]]\na = "a"\nb = "c"\nround_trip_ms = 1', "not two of"),
        ('[[links]]\na = "a"\nb = "a"\nround_trip_ms = 1', "not two of"),
        ('[[links]]\na = "a"\nb = "b"', "round_trip_ms: is missing"),
        ("[registry]\nlookup_ms = -1", "registry.lookup_ms"),
    ],
)
def test_links_that_cannot_be(rest: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_cluster(cluster(rest), "c")


def test_one_site_is_an_error() -> None:
    with pytest.raises(InputError, match="needs 2 to 64"):
        sites_of(parse_cluster("[nodes]\ncount=1\ncores=1\nlink_mbit=1", "c"))


def test_the_choice_is_the_simplest_of_those_alike() -> None:
    alike = made([[(COMPUTING, 100.0), (LOOKUP, 0)]], entries(0), [""], known=[1])
    found = predict_metadata(alike, parse_cluster(cluster(), "c"))
    assert found["best"] == "centralised" and len(found["alike"]) == 3
    assert found["seconds_without"] == pytest.approx(100)
    tasks: list[Steps] = [[(UPDATE, i * 50 + j) for j in range(50)] for i in range(4)]
    busy = made(tasks, [b"d%d/%d" % (i // 50, i % 50) for i in range(200)], ["a", "b"] * 2)
    found = predict_metadata(busy, parse_cluster(cluster(), "c"))
    times = {row["name"]: row["seconds"] for row in found["strategies"]}
    assert found["best"] == "replicated" and times["replicated"] < times["centralised"]
    assert times["decentralised"] < times["centralised"]  # half of its operations stay local
    row = found["strategies"][0]
    assert sum(site["operations"] for site in row["sites"]) == row["operations"] == 200


def test_directories_live_where_they_are_used() -> None:
    tasks: list[Steps] = [[(UPDATE, 0), (UPDATE, 1)], [(UPDATE, 2)]]
    work = made(tasks, [b"x/0", b"x/1", b"y/0"], ["b", "a"])
    found = directories(work, TWO, 0)
    assert found == [
        {"path": "x", "site": "b", "operations": 2, "from_site": 2, "saved_seconds": 2.0}
    ]
    assert directories(replace(work, site=["", ""]), TWO, 0) == []


def test_the_command(tmp_path: Path) -> None:
    build = RunBuilder()
    driver = build.process(["sh", "wf.sh"])
    maker = build.process(["make_it"], parent=driver, start=1, end=4)
    made_file = build.file("/data/x", existed=False, size=1000)
    build.write(maker, made_file, 0, 1000, at=3)
    user = build.process(["use"], parent=driver, start=5, end=7)
    build.read(user, made_file, 0, 1000, at=5)
    build._add("metadata_ops", proc=user, dir=b"/data", op="stat", count=7, errors=0)
    build._add("metadata_ops", proc=user, dir=b"/etc", op="stat", count=7, errors=0)
    build._add("metadata_ops", proc=user, dir=b"/data", op="unlink", count=2, errors=0)
    run = build.bundle(tmp_path).path
    (tmp_path / "sites.toml").write_text(cluster())
    words = ("predict", run, "--cluster", "sites.toml", "--metadata", "all")
    done = inside(*words, "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    jsonschema.validate(data, json_schema("prediction"))
    found = data["metadata"]
    assert [row["name"] for row in found["strategies"]] == list(STRATEGIES)
    assert found["operations"] == 1 + 1 + 7 + 2
    text = inside(*words, cwd=tmp_path).stdout
    assert text.startswith("Metadata: ") and "decentralised-replica" in text


@pytest.mark.slow
def test_lint_argues_with_predicted_seconds(tmp_path: Path) -> None:
    """Updates from two sites: half of them cross to a central registry, none to a local one."""
    build = RunBuilder()
    driver = build.process(["sh", "wf.sh"])
    for i in range(4):
        maker = build.process(["make_it", str(i)], parent=driver, start=1, end=2)
        made_file = build.file(f"/data/x{i}", existed=False, size=1000)
        build.write(maker, made_file, 0, 1000, at=2)
        build._add("metadata_ops", proc=maker, dir=b"/data", op="mkdir", count=200, errors=0)
    run = build.bundle(tmp_path).path
    (tmp_path / "sites.toml").write_text(cluster())
    words = ("lint", run, "--select", "TM005", "--format", "json")
    assert inside(*words, cwd=tmp_path).returncode == 0
    done = inside(*words, "--cluster", "sites.toml", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["evidence"]["saved_seconds"] > 1
    assert "with one central registry" in finding["message"]
    far = cluster('[[links]]\na = "a"\nb = "b"\nround_trip_ms = 0.2\n')
    (tmp_path / "sites.toml").write_text(far)
    assert inside(*words, "--cluster", "sites.toml", cwd=tmp_path).returncode == 0
