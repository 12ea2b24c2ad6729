"""calibrate -o cluster.toml: the probe's requests, the values derived from them, and the file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripts.bench.gain.stores import STORES

from tests.support import shaped
from tracehint.adapters.place.hosts import STARTS, Host
from tracehint.adapters.probe.derive import cluster_text, derive
from tracehint.adapters.probe.jobs import measure_jobs
from tracehint.adapters.probe.measurements import ProcessorWork, Seen
from tracehint.adapters.probe.probe import Answer, Nodes, agents, measure, probe
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.cluster_file import parse_cluster, read_cluster
from tracehint.cli import main
from tracehint.errors import InputError

MB = 1_000_000


def seen(**more: Any) -> Seen:
    """Return probe results of an idle store of five nodes: rotation over 25 MB/s links."""
    found = Seen(5, 4, 8 * 10**9, 16 << 20)
    samples: dict[str, list[float]] = {
        "create": [0.002], "small_write": [0.004], "open": [0.001],
        "small_read_local": [0.002], "small_read": [0.003], "creates": [1000.0],
        "opens": [4000.0], "small_reads": [5000.0], "local": [400e6], "remote": [24e6],
        "link_in": [24e6, 25e6], "link_out": [24.5e6], "efficiency": [0.96, 0.97],
        **more,
    }  # fmt: skip  # a table
    for name, values in samples.items():
        found.samples[name] += values
    found.laws = [[(i + 2) % 5] for i in range(20)]
    return found


def written(found: Seen, base: str | None = None) -> tuple[Cluster, str]:
    text = cluster_text("mine", base, *derive(found))
    if "link_mbit" not in text:  # only a probe of several nodes can measure it
        text = text.replace("[nodes]", "[nodes]\nlink_mbit = 1000")
    return parse_cluster(text, "mine.toml"), text


def test_numbers_follow_from_what_was_seen() -> None:
    cluster, text = written(seen())
    node, store = cluster.nodes[0].numbers, cluster.store.numbers
    assert (node["link_mbit"].low, node["link_mbit"].high) == pytest.approx((24e6, 25e6))
    assert node["link_efficiency"].value == pytest.approx(0.965)
    assert node["local_mb_s"].value == pytest.approx(400e6)
    assert store["create_ms"].value == pytest.approx(0.001)
    assert store["open_ms"].value == pytest.approx(1 / 4000)
    assert store["request_ms"].value == pytest.approx(5 / 5000)
    over = (16 << 10) / 24.5e6
    assert store["latency_ms"].value == pytest.approx(0.001 - over, rel=0.05)
    # a small local read alone: open and request in the services, one response over the network
    known = 1 / 4000 + 5 / 5000 + (0.001 - over)
    assert store["read_wait_ms"].value == pytest.approx(0.002 - known, rel=0.3)
    assert cluster.store.words["law"] == "rotate"
    assert "again after 5" in text
    assert "stream_mb_s" not in text, "one stream fills the link"


def test_what_comes_beside_the_files_of_one_reader_is_measured() -> None:
    cluster, text = written(seen(call_bytes=[251.0], read_ahead=[1e6, 2e6, 1.5e6]))
    store = cluster.store.numbers
    assert store["call_bytes"].value == pytest.approx(251)
    ahead = store["read_ahead_mb"]
    assert (ahead.low, ahead.value, ahead.high) == pytest.approx((1e6, 1.5e6, 2e6))
    assert "3 times two readers" in text
    assert "read_ahead_mb" not in written(seen())[1], "not measured, not said"


def test_a_service_is_never_longer_than_a_call_alone() -> None:
    cluster, _ = written(seen(creates=[100.0], opens=[100.0], small_reads=[10.0]))
    store = cluster.store
    assert store["create_ms"] == pytest.approx(0.002)
    assert store["open_ms"] == pytest.approx(0.001)
    assert store["request_ms"] == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("laws", "words"),
    [
        ([[0]] * 20, {"law": "local"}),
        ([[int(x)] for x in "31415926535897932384"], {"law": "random"}),
        ([[]] * 20, {"servers": "apart"}),
    ],
)
def test_the_law_is_told_from_who_holds_the_files(
    laws: list[list[int]], words: dict[str, str]
) -> None:
    found = seen()
    found.laws = laws
    known, _ = derive(found)
    assert words.items() <= {k.key: k.value for k in known}.items()


def test_copies_are_counted() -> None:
    found = seen()
    found.laws = [[i % 5, (i + 1) % 5] for i in range(20)]
    assert written(found)[0].store["copies"] == 2


def test_what_was_not_measured_is_said_and_left_to_the_base() -> None:
    found = Seen(1, 4, 8 * 10**9, 16 << 20)
    found.skipped = ["link"]
    cluster, text = written(found, base="moosefs")
    assert "# Not measured: link: the time was over." in text
    assert "# Not measured: calls of all nodes at once." in text
    assert "# Not measured: where files go: there was one node." in text
    assert cluster.store.words["law"] == "rotate"


def test_nodes_that_slow_each_other_share_a_machine() -> None:
    cluster, text = written(seen(local_all=[100e6, 120e6, 110e6, 90e6, 80e6]))
    assert cluster.store["shared_mb_s"] == pytest.approx(500e6)
    assert "5 nodes at once, each from itself" in text
    assert "shared_mb_s" not in written(seen(local_all=[390e6] * 5))[1]
    assert "shared_mb_s" not in written(seen(local_all=[10e6]))[1], "one node shares with nobody"


def one_machine(idle: float = 0.2) -> Seen:
    """Return results of nodes on one machine of four processors: 3 ms per MB, 4 more on a link."""
    found = seen(local_all=[100e6] * 5)
    found.machines = ["8d2f"] * 5
    found.work["rest"] = [
        ProcessorWork(idle * 0.5, 0.5, 1, 0),
        ProcessorWork(idle * 0.5, 0.5, 1, 0),
    ]
    found.work["calls"] = [
        ProcessorWork(1.2 + idle * 0.5, 0.5, 1200, 0),
        ProcessorWork(1 + idle * 0.5, 0.5, 2000, 0),
    ]
    found.work["bytes"] = [
        ProcessorWork(amount * 3e-9 + over * 4e-9 + idle * 2, 2, amount, over)
        for amount, over in ((160e6, 0), (160e6, 160e6), (320e6, 256e6))
    ]
    found.work["bytes"].append(ProcessorWork(9, 0.01, 1e6, 0))  # too short for the counters
    return found


def test_nodes_of_one_machine_share_its_processors() -> None:
    cluster, text = written(one_machine())
    store = cluster.store
    assert cluster.nodes[0].words["host"] == cluster.hosts[0][0] == "machine"
    assert cluster.hosts[0][1]["processors"] == pytest.approx(3.8)
    assert "all 5 nodes are one machine" in text
    low, usual, high = (getattr(store.numbers["file_cpu_ms"], x) for x in ("low", "value", "high"))
    assert (low, usual, high) == pytest.approx((0.0005, 0.00075, 0.001))
    costs = [store[f"{what}_cpu_ms_mb"] for what in ("client", "server", "link")]
    assert costs == pytest.approx([1.5e-9, 1.5e-9, 2e-9], rel=1e-3)
    assert "shared_mb_s" not in text, "counted once"


def test_what_others_use_of_the_processors_is_no_work_of_the_store() -> None:
    cluster, text = written(one_machine(idle=3))
    assert "others used most of them" in text and "client_cpu_ms_mb" not in text
    assert cluster.hosts[0][1]["processors"] == pytest.approx(2)


def test_some_nodes_of_one_machine_are_told() -> None:
    found = one_machine()
    found.machines = ["8d2f", "8d2f", "x", "y", ""]
    cluster, text = written(found)
    assert not cluster.hosts and "only some are (set `host`)" in text
    found.machines = [""] * 5
    assert "say `host`" not in written(found)[1]


def test_a_node_alone_is_not_measured_by_what_all_get_at_once() -> None:
    cluster, _ = written(seen(local=[390e6], local_all=[100e6, 120e6, 110e6, 90e6, 80e6]))
    assert cluster.nodes[0].numbers["local_mb_s"].low == pytest.approx(390e6)


def test_what_a_call_waits_on_a_full_link_is_beyond_what_it_takes_alone() -> None:
    found = written(seen(create_full=[0.042, 0.052, 0.047]))[0].store.numbers["busy_ms"]
    assert (found.low, found.value, found.high) == pytest.approx((0.040, 0.045, 0.050))
    assert "busy_ms" not in written(seen())[1]


def test_slow_streams_and_disks_are_limits_of_their_own() -> None:
    _, text = written(seen(remote=[10e6], local_write=[300e6], synced=[5e6]))
    assert "stream_mb_s = 10" in text
    assert "disk_write_mb_s = 5" in text


@pytest.mark.slow
def test_one_node_measures_itself_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "cluster.toml"
    store = tmp_path / "store"
    store.mkdir()
    args = ["calibrate", str(store), "--seconds", "20", "--size-mb", "1", "--store", "moosefs"]
    assert main([*args, "-o", str(out)]) == 0
    cluster = read_cluster(out)
    assert cluster.name == "cluster"
    assert cluster.store["read_wait_ms"] >= 0
    assert list(store.iterdir()) == []
    assert "the link" in out.read_text()


def host(name: str, *words: str) -> Host:
    return Host(name=name, start=words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("false", "{argv}"), "the probe ended"),
        (("no-such-program", "{argv}"), "cannot be reached"),
        (("echo", "hello", "{argv}"), "its start command must not print anything"),
        (("sh", "-c", "echo '[]'; cat", "{argv}"), "its start command must not print anything"),
    ],
)
def test_a_node_that_does_not_answer_is_named(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as error:
        probe(tmp_path, [host("n7", *words)], seconds=5, size=MB)
    told = f"{error.value} {error.value.remedy}".lower()
    assert "n7" in told and said in told
    assert list(tmp_path.iterdir()) == []


def test_the_agent_touches_nothing_outside_its_directory(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "x").write_bytes(b"x" * 100)
    agent = Path(__file__).parents[1] / "adapters" / "probe" / "agent.py"
    asked = [
        {"do": do, "names": [name], "size": 10, "limit": 5}
        for do in ("read", "write", "stored", "direct", "renew")
        for name in ("../x", "..", "", str(tmp_path / "x"))
    ]
    lines = "".join(json.dumps(a) + "\n" for a in [*asked, {"do": "rm"}, 7])
    done = subprocess.run(
        [sys.executable, agent, inside], input=lines + "nonsense\n", capture_output=True, text=True
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == len(asked) + 3
    assert all("error" in answer for answer in said)
    assert (tmp_path / "x").read_bytes() == b"x" * 100
    assert list(inside.iterdir()) == []


@pytest.mark.slow
def test_of_clients_that_keep_what_they_know_every_job_goes_past_them(tmp_path: Path) -> None:
    """Requests to two nodes' agents, in order: no node reads data that its client may cache."""
    asked: list[tuple[int, str, str]] = []

    class Kept(Nodes):
        def ask(self, wanted: Any, do: str, **more: Any) -> dict[int, Answer]:
            asked.extend((node, do, name) for node, some in wanted.items() for name in set(some))
            return {
                node: replace(
                    said,
                    came=1e6,
                    times=[
                        [*row[:-2], 1e6 * (int(name[-1]) % 2 != node), 0.0]  # by its number
                        for name, row in zip(wanted[node], said.times, strict=False)
                    ],
                )
                for node, said in super().ask(wanted, do, **more).items()
            }

    here = [Host(name=str(i), start=STARTS["here"]) for i in range(2)]
    with agents(here, tmp_path, 60) as nodes:
        measure(Kept(nodes.agents, nodes.until), 1 << 20, keeps=True)
    assert {do for _, do, _ in asked} == {
        "rest",
        "stored",
        "create",
        "look",
        "direct",
        "renew",
        "read",
    }
    has: set[tuple[int, str]] = set()
    for node, do, name in asked:
        if do == "renew":
            has = {(n, f) for n, f in has if f != name}
        elif do == "read":
            assert (node, name) not in has, f"{name} may be in the memory of node {node}"
        if do in ("stored", "read"):
            has.add((node, name))


@pytest.mark.slow
def test_on_a_slow_store_only_files_that_were_made_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracehint.adapters.probe.probe.CALLS_S", 0.0)  # one file per step
    with agents([Host(name="0", start=STARTS["here"])], tmp_path, 60) as nodes:
        found = measure(nodes, 1 << 20)
    assert len(found.samples["small_write"]) == 1
    assert found.samples["small_reads"]


def test_of_streams_that_were_cut_short_what_they_did_is_known(tmp_path: Path) -> None:
    names = [f"b{i}" for i in range(8)]
    with agents([Host(name="0", start=STARTS["here"])], tmp_path, 60) as nodes:
        made = nodes.ask({0: names}, "create", streams=4, limit=0.0)[0]
    assert sorted(made.done) == sorted(p.name for p in tmp_path.iterdir()) and made.done
    assert len(made.times) == len(made.done)


@pytest.mark.slow
def test_the_work_of_a_store_is_told_from_that_of_others(tmp_path: Path) -> None:
    own, other = tmp_path / "ownstore", tmp_path / "another"
    for program in (own, other):
        shutil.copy("/bin/sh", program)
    here = [Host(name="0", start=STARTS["here"])]
    working = [subprocess.Popen([p, "-c", "while :; do :; done"]) for p in (own, other)]
    try:
        for programs, least, most in (((own.name,), 0.01, 1.0), (("no-such",), 0.02, 1e9)):
            with agents(here, tmp_path, 60, programs) as nodes:
                said = nodes.ask({0: ["r0"]}, "rest")[0]
            assert least <= said.busy <= most * said.seconds + 0.1
            assert said.own == 0 or programs == (own.name,)
    finally:
        for process in working:
            process.kill()
            process.wait()


def test_files_of_the_probe_lie_in_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def seeing(*_: object, size: int, **_more: object) -> Seen:
        sizes.append(size)
        return Seen(1, 4, 8 * 10**9, size)

    monkeypatch.setattr("tracehint.adapters.probe.probe.probe", seeing)
    for store in ("cephfs", "moosefs", "nfs"):
        out = tmp_path / f"{store}.toml"
        assert main(["calibrate", str(tmp_path), "--store", store, "-o", str(out)]) == 0
    assert sizes == [4 << 20, 16 << 20, 16 << 20], "an object of CephFS has 4 MiB"


def test_wrong_options_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(tmp_path), "-o", "c.json"]) == 2
    assert "NAME.toml" in capsys.readouterr().err
    for place in (str(tmp_path / "none"), "/proc"):
        assert main(["calibrate", place]) == 2
        assert "Name" in capsys.readouterr().err
    out = tmp_path / "c.toml"
    assert main(["calibrate", str(tmp_path), "--size-mb", "5000", "-o", str(out)]) == 2
    assert not out.exists()


@pytest.mark.store
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "law"),
    [("moosefs", "rotate"), pytest.param("cephfs", "random", marks=pytest.mark.full)],
)
def test_five_nodes_of_a_real_store_tell_their_links_and_its_law(
    name: str, law: str, tmp_path: Path
) -> None:
    store = STORES[name]
    if why := store.missing():
        pytest.skip(why)
    with store.start(tmp_path, link=200) as bed:
        rows = "".join(
            f'[[host]]\nname = "n{n.label}"\nstart = {json.dumps(shaped.on_node(bed.mount, n))}\n'
            for n in bed.nodes
        )
        (tmp_path / "hosts.toml").write_text(rows)
        out = tmp_path / "measured.toml"
        args = ["--hosts", str(tmp_path / "hosts.toml"), "--store", name, "--seconds", "120"]
        assert main(["calibrate", str(bed.mount), *args, "-o", str(out)]) == 0
        assert not [p for p in bed.mount.iterdir() if "calibrate" in p.name]
    cluster = read_cluster(out)
    assert cluster.count == 5
    assert cluster.store.words["law"] == law
    assert cluster.store["copies"] == 1
    link = cluster.nodes[0].numbers["link_mbit"]
    assert link.high <= 26e6, "no more than the 200 Mbit/s that the link has"
    assert link.value >= 10e6
    assert cluster.nodes[0]["local_mb_s"] > 30e6, "what stays on a node passes no link"


SBATCH = """#!/bin/bash
# one job after the other begins, each 0.1 s after the one before, and 0.3 s after it was submitted
exec 9>{folder}/queue
echo $$
for word; do case $word in --wrap=*) job=${{word#--wrap=}};; esac; done
( sleep 0.3; flock 9; sleep 0.1; sh -c "$job" ) >/dev/null 2>&1 &
"""


@pytest.mark.slow
@pytest.mark.parametrize("works", [True, False])
def test_a_batch_system_is_measured_through_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    tools, store = tmp_path / "bin", tmp_path / "a store"
    for folder in (tools, store):
        folder.mkdir()
    (tools / "sbatch").write_text(SBATCH.format(folder=tmp_path) if works else "#!/bin/false")
    (tools / "sinfo").write_text("#!/bin/sh\nprintf '4\n2\n4\n'\n")
    (tools / "scancel").write_text(f"#!/bin/sh\necho $* >{tmp_path}/cancelled\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    found = seen()
    measure_jobs(found, store, ["n1", "n2", "n3"])
    cluster, text = written(found)
    assert cluster.nodes[0]["cores"] == 2
    if not works:
        assert "task_ms" not in text and "# Not measured: starting jobs" in text
        return
    # load on the machine only adds to the stand-in's delays
    between, alone = cluster.scheduler["dispatch_ms"], cluster.scheduler["task_ms"]
    assert 0.1 <= between < 2 and 0.4 <= between + alone < 6
    assert len((tmp_path / "cancelled").read_text().split()) == 14  # waiting jobs are cancelled
