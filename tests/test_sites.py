"""Sites or racks from a table, and savings in seconds from link rates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import RunBuilder
from tests.support.cli import inside
from tests.support.flow_builder import FlowBuilder
from tests.support.flow_cut import bundle_of
from tests.support.flow_shapes import MB, many_to_one, one_to_many
from tracehint.analyzer.analyze import analyze
from tracehint.analyzer.model import Options
from tracehint.analyzer.patterns.run_labels import label
from tracehint.analyzer.sites import assign, crossing_probability, read_sites
from tracehint.errors import InputError
from tracehint.schemas.manifest import Manifest, RecordingHost

TWO = {"a": 2, "b": 2}


def table(folder: Path, text: str) -> Path:
    path = folder / "sites.txt"
    path.write_text(text)
    return path


def test_a_table_of_hosts_and_patterns(tmp_path: Path) -> None:
    text = "# our racks\n\nlogin  core # the head\nnode1* rack1\nnode* rack2\n"
    sites = read_sites(table(tmp_path, text))
    assert sites == (("login", "core"), ("node1*", "rack1"), ("node*", "rack2"))
    hosts = [RecordingHost(name=n, site="old") for n in ("login", "node12", "node2", "other")]
    found = assign(Manifest(hosts=hosts), sites)
    assert [h.site for h in found.hosts] == ["core", "rack1", "rack2", "old"]
    assert [h.site for h in hosts] == ["old"] * 4  # the bundle's own manifest is unchanged


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("node1\n", "line 1"),
        ("a b\nnode1 rack 1\n", "line 2"),
        ("\x01 x\n", "line 1"),
        ("n " + "x" * 300 + "\n", "line 1"),
    ],
)
def test_what_is_no_table_is_an_error(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_sites(table(tmp_path, text))


def test_no_file_no_text_no_host(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_sites(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe x\n")
    with pytest.raises(InputError, match="UTF-8"):
        read_sites(tmp_path / "binary")
    with pytest.raises(InputError, match="names none of the hosts"):
        assign(Manifest(hosts=[RecordingHost(name="node1")]), (("other*", "x"),))


def test_pairs_of_nodes_at_different_sites() -> None:
    """Four nodes, two at each of two sites: 2 of the 3 other nodes are remote."""
    assert crossing_probability(TWO, 4) == pytest.approx(2 / 3)
    assert crossing_probability({"a": 1, "b": 3}, 4) == pytest.approx(1 - (0 + 3 / 4 * 2) / 3)
    assert crossing_probability({"a": 1, "b": 1}, 8) == pytest.approx(4 / 7)
    assert (
        crossing_probability({"a": 4}, 4)
        == crossing_probability({}, 4)
        == crossing_probability(TWO, 1)
        == 0
    )


def costs(
    flow: FlowBuilder, sites: dict[str, int], options: Options | None = None
) -> list[dict[str, Any]]:
    """Return `evidence.cost` of each label of a file."""
    run = {"nodes": flow.nodes, "completeness": {"blind_to": []}, "hosts_by_site": sites}
    found = label(flow.flow(), flow.task_table(), options or Options(), run)
    own = [p for p in found.patterns.to_pylist() if p["edge"] is None]
    return [json.loads(p["evidence"])["cost"] | {"pattern": p["pattern"]} for p in own]


@pytest.mark.rule("P58")
def test_bytes_between_sites_are_counted_beside_the_others() -> None:
    """Two of three other nodes are remote: two thirds of the transfers cross sites."""
    for cost in costs(many_to_one([3 * MB, 3 * MB])[0], TWO):
        assert cost["default_between_sites"] == round(cost["default_network"] * 2 / 3)
        assert cost["between_sites"] == round(cost["network"] * 2 / 3)


@pytest.mark.rule("P58")
def test_one_copy_for_each_site_crosses_and_no_reader_does() -> None:
    """Eight readers, four copies: one copy is sent to the other site."""
    flow, _, _ = one_to_many([[(0, MB)]] * 8, MB)
    flow.nodes = 8
    (cost,) = costs(flow, {"a": 4, "b": 4})
    assert cost["placement"] == "replicas=4"
    assert cost["between_sites"] == MB
    (cost,) = costs(flow, dict.fromkeys("abcd", 2))
    assert cost["between_sites"] == 3 * MB
    # eight sites of one node, four copies: half of the remote readers have no copy at their site
    (cost,) = costs(flow, dict.fromkeys("abcdefgh", 1))
    assert cost["between_sites"] == 3 * MB + 4 * MB // 2


@pytest.mark.rule("P58")
def test_sites_decide_nothing() -> None:
    flow, _, _ = one_to_many([[(0, MB)]] * 8, MB)
    with_sites, without = costs(flow, TWO)[0], costs(flow, {})[0]
    assert "between_sites" not in without
    assert {k: v for k, v in with_sites.items() if k in without} == without


@pytest.mark.rule("P48", "P59")
def test_seconds_have_a_range() -> None:
    """8 and 16 MB/s: at least the wait at the fast rate, at most wait and traffic at the slow."""
    flow, _, _ = one_to_many([[(0, 4 * MB)]], 4 * MB)
    (cost,) = costs(flow, {}, Options(link_rates=(8.0 * MB, 16.0 * MB)))
    assert (cost["saves_seconds_low"], cost["saves_seconds_high"]) == (4 / 16, 10 / 8)
    (cost,) = costs(flow, {})
    assert "saves_seconds_low" not in cost


def two_sites() -> RunBuilder:
    """Build a run with a writer on n1, a reader on n1, and a reader on n2."""
    run = RunBuilder(host="n1")
    shared = [{"path": "/data", "fstype": "nfs4", "source": "s:/x"}]
    run.manifest.hosts = [RecordingHost(name=n, mounts=list(shared)) for n in ("n1", "n2")]
    root = run.process(["make"])
    make, near = (run.process([t], parent=root) for t in ("make_it", "near"))
    file = run.file("/data/f", existed=False)
    run.write(make, file, 0, 1000, at=1)
    run.read(near, file, 0, 1000, at=2)
    run.host = "n2"
    far = run.process(["far"])
    run.read(far, run.file("/data/f", existed=True, ino=10_000 + file), 0, 600, at=3)
    return run


def test_bytes_read_from_another_site() -> None:
    bundle = bundle_of(two_sites())
    run = analyze(bundle, Options(sites=(("n1", "east"), ("n2", "west")))).run
    assert run["sites"] == ["east", "west"]
    assert run["hosts_by_site"] == {"east": 1, "west": 1}
    assert run["between_sites_bytes"] == 600
    assert "between_sites_bytes" not in analyze(bundle).run
    assert analyze(bundle, Options(sites=(("n*", "east"),))).run["sites"] == ["east"]


def test_the_command_takes_the_tables(tmp_path: Path) -> None:
    two_sites().save(tmp_path / "run.trace")
    table(tmp_path, "n1 east\nn2 west\n")
    options = ("--sites", "sites.txt", "--bandwidth", "0.008", "--call-cost-bytes", "0")
    done = inside("analyze", "run.trace", "--format", "json", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["run"]["parameters"]["link_rates"] == [1000, 1000]
    costs = [p["evidence"]["cost"] for f in data["files"] for p in f["patterns"]]
    assert costs and all("between_sites" in c and "saves_seconds_high" in c for c in costs)
    text = inside("analyze", "run.trace", *options, cwd=tmp_path)
    assert "2 sites; 600 B read from tasks of another site" in text.stdout
    wrong = inside("analyze", "run.trace", "--sites", "none.txt", cwd=tmp_path)
    assert wrong.returncode != 0 and "none.txt" in wrong.stderr


def test_lint_takes_the_table(tmp_path: Path) -> None:
    """Many metadata calls: one central server is no longer adequate for two sites."""
    run = two_sites()
    run._add("metadata_ops", proc=2, dir=b"/data", op="mkdir", count=5000, errors=0)
    run.save(tmp_path / "run.trace")
    table(tmp_path, "n1 east\nn2 west\n")
    codes = []
    for options in ((), ("--sites", "sites.txt")):
        done = inside(
            "lint", "run.trace", "--format", "json", "--select", "TM005", *options, cwd=tmp_path
        )
        codes.append(done.returncode)
        assert ("TM005" in done.stdout) is bool(options), done.stdout + done.stderr
    assert codes == [0, 1]
