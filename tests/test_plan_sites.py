"""`plan` over several sites: bytes between them are counted, kept low, and decide equal times."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from tests.support.cli import inside
from tests.support.planning import pairs, planned, star, write
from tests.support.predicting import MB, Task, need_engine, plain, run, workload
from tests.test_plan import SCHEMA, rows
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.cluster_file import parse_cluster
from tracehint.analyzer.predict.model import Placement
from tracehint.hintgen.plan.graph import graph_of
from tracehint.hintgen.plan.model import Draft, Estimate
from tracehint.hintgen.plan.objective import choose
from tracehint.hintgen.plan.site_cut import cuts_by_site, sites_of

pytestmark = pytest.mark.slow

NODES = '[[nodes]]\ncount = {count}\ncores = 4\nlink_mbit = 200\nsite = "{site}"\n'
SITE = '[[sites]]\nname = "{site}"\nup_mbit = 50\ndown_mbit = 50\n'


@pytest.fixture(autouse=True)
def _engine() -> None:
    need_engine()


def several(**nodes: int) -> str:
    """Return a cluster file with this number of nodes at each site."""
    parts = [NODES.format(site=site, count=count) for site, count in nodes.items()]
    parts += [SITE.format(site=site) for site in nodes]
    return '\nbase = "moosefs"\nname = "rig"\n' + "".join(parts)


def on_sites(workflow: Path, *words: str, **nodes: int) -> dict[str, Any]:
    """Return the JSON of `plan` on a cluster with these nodes per site."""
    (workflow.parent / "rig.toml").write_text(several(**nodes))
    return planned(workflow, *words)


def two_sites(count: int, **store: float) -> Cluster:
    """Build a cluster with half of the nodes at each of two sites, linked at 1 MB/s."""
    sites = "".join(
        f'[[sites]]\nname = "{name}"\nup_mbit = 8\ndown_mbit = 8\n' for name in ("a", "b")
    )
    half = plain(count // 2, node='site = "a"', rest=sites).with_store(**store)
    other = replace(half.nodes[0], words={**half.nodes[0].words, "site": "b"})
    return replace(half, nodes=(half.nodes[0], other))


def test_bytes_between_sites_are_counted_where_a_file_is_on_every_server() -> None:
    work = workload([Task("w", [("write", "x")])], {"x": 100 * MB})
    found = run(work, two_sites(40, chunk_mb=1 * MB))
    assert found.network_bytes == pytest.approx(39 / 40 * 100 * MB)
    assert found.site_bytes == pytest.approx(20 / 40 * 100 * MB)
    assert found.seconds == pytest.approx(50, rel=0.01)  # limited by the link between sites


def test_bytes_between_sites_are_counted_chunk_by_chunk() -> None:
    work = workload([Task("w", [("write", "x")])], {"x": 100 * MB})
    found = run(work, two_sites(4, chunk_mb=25 * MB))
    assert found.site_bytes == pytest.approx(50 * MB)
    # chunks in sequence: local, from a neighbour (2.5 s), two from the other site (25 s each)
    assert found.seconds == pytest.approx(52.5)


def test_many_sites_have_room_in_one_transfer() -> None:
    names = [f"s{i}" for i in range(60)]
    rest = "".join(f'[[sites]]\nname = "{n}"\nup_mbit = 8\ndown_mbit = 8\n' for n in names)
    one = plain(1, node=f'site = "{names[0]}"', rest=rest).with_store(chunk_mb=1 * MB)
    nodes = [replace(one.nodes[0], words={**one.nodes[0].words, "site": n}) for n in names]
    for copies in (1, 12):
        cluster = replace(one, nodes=tuple(nodes)).with_store(copies=copies)
        work = workload([Task("w", [("write", "x")]), Task("r", [("read", "x")])], {"x": 90 * MB})
        found = run(work, cluster)
        assert found.site_bytes == pytest.approx(found.network_bytes)
    few = replace(one, nodes=tuple(nodes)).with_store(chunk_mb=10 * MB, copies=12)
    assert run(work, few).site_bytes > 0


def test_chains_stay_at_their_site(tmp_path: Path) -> None:
    data = on_sites(write(tmp_path, pairs(40)), "--stage-inputs", paris=3, lyon=3)
    jsonschema.validate(data, SCHEMA)
    by_name = rows(data)
    assert by_name["default"]["site_bytes"] > 1e9
    assert by_name["sites"]["site_bytes"] == 0
    assert by_name[data["chosen"]]["site_bytes"] <= 0.25 * by_name["local-first"]["site_bytes"]


def test_without_sites_nothing_is_said_of_them(tmp_path: Path) -> None:
    data = planned(write(tmp_path, pairs(4)))
    assert {row["site_bytes"] for row in data["strategies"]} == {None}
    assert "sites" in {row["name"] for row in data["left_out"]}


def test_the_table_names_bytes_between_sites(tmp_path: Path) -> None:
    workflow = write(tmp_path, star(12))
    (tmp_path / "rig.toml").write_text(several(paris=2, lyon=1))
    for words, expected in ((("plan",), "between sites"), (("predict",), "between sites")):
        done = inside(*words, workflow, "--cluster", tmp_path / "rig.toml", cwd=tmp_path)
        assert done.returncode == 0 and expected in done.stdout, done.stdout + done.stderr
    done = inside(
        "predict", workflow, "--cluster", tmp_path / "rig.toml", "--format", "json", cwd=tmp_path
    )
    assert json.loads(done.stdout)["configurations"][0]["site_bytes"] > 0


@pytest.mark.parametrize("nodes", [{"a": 1, "b": 1}, {"a": 5, "b": 1, "c": 2}, {"b": 3, "a": 9}])
def test_cuts_use_nodes_of_the_task_s_site(nodes: dict[str, int]) -> None:
    cluster = parse_cluster(several(**nodes), "rig.toml")
    steps = [Task(f"m{i}", [("write", f"x{i}")]) for i in range(30)]
    steps += [Task(f"t{i}", [("read", f"x{i}"), ("write", f"y{i}")]) for i in range(30)]
    sizes = {f"{letter}{i}": MB for letter in "xy" for i in range(30)}
    cuts = cuts_by_site(graph_of(workload(steps, sizes)), cluster, 1)
    site = sites_of(cluster)
    assert len(site) == sum(nodes.values()) and set(site) == set(range(len(nodes)))
    used = [set(site[cut]) for cut in cuts]
    assert set(range(len(nodes))) in used  # all sites together
    assert all({s} in used for s in range(len(nodes)))  # and each alone
    together = cuts[used.index(set(range(len(nodes))))]
    assert np.array_equal(site[together[:30]], site[together[30:]])  # no pair is separated
    assert len(set(together.tolist())) == sum(nodes.values())  # every node has tasks


def test_at_equal_times_fewer_bytes_between_sites_win() -> None:
    def made(name: str, seconds: float, between: float, simple: bool = False) -> Estimate:
        runs = (seconds,) * 3
        draft = Draft(name, Placement(name))
        return Estimate(name, "", seconds, seconds, seconds, 100.0, between, runs, draft, simple)

    default = made("default", 100, 90, simple=True)
    near, far = made("near", 50.5, 5), made("far", 50, 60)
    assert choose([default, near, far], 0.1)[1] == "near"
    assert choose([default, made("near", 60, 5), far], 0.1)[1] == "far"
