"""Real CephFS: Debian's Ceph with memstore OSDs on five shaped nodes, and ceph-fuse.

The properties that the adapter needs, apply, verify, undo, scripts, the tag program and locate.
`make e2e-cephfs`.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ceph import CephBed, ceph_cluster, missing
from tests.support.cli import TRACEHINT
from tests.support.hints import rule, save
from tests.support.patience import PATIENCE_S
from tracehint.adapters.engines.tag_table import TagTarget, encode, tag_files
from tracehint.adapters.stores.cephfs import CephFs
from tracehint.adapters.stores.places import Places, load_places
from tracehint.hintgen.hints.hintfile import dump
from tracehint.hintgen.hints.model import FolderHints, HintFile

pytestmark = [pytest.mark.full, pytest.mark.slow, pytest.mark.store]

PINS = ("ceph.dir.pin", "ceph.dir.pin.distributed")
TOOL = TRACEHINT
PLACES = """local = "node_{host}"
groups = ["node_A", "node_B", "node_C"]
ranks = 2
"""
RULES = (
    rule("big.dat", BlockSize=100_000),
    rule("parts/p_{n}.dat", DP="collocation|sum"),
    rule("many/{n}/x.dat", DP="distribute|sum"),
)


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CephBed]:
    """A running CephFS."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with ceph_cluster(tmp_path_factory.mktemp("ceph")) as started:
        yield started


@pytest.fixture
def data(bed: CephBed, tmp_path: Path) -> Path:
    """A directory on the store, created through the head's client."""
    folder = bed.mount / tmp_path.name
    (folder / "parts").mkdir(parents=True)
    (folder / "many" / "1").mkdir(parents=True)
    for name in ("big.dat", "parts/p_0.dat", "parts/p_1.dat", "many/1/x.dat"):
        (folder / name).touch()
    (tmp_path / "map.toml").write_text(PLACES)
    return folder


def get(path: Path, name: str) -> str | None:
    """Return an attribute as text, or None if it is not set."""
    try:
        return os.getxattr(path, name).decode()
    except OSError as error:
        assert error.errno == errno.ENODATA
        return None


def tracehint(bed: CephBed, *arguments: str | Path, code: int = 0) -> str:
    """Run tracehint on the head; return its standard output and error."""
    done = subprocess.run(
        bed.command(*TOOL, *arguments),
        text=True,
        capture_output=True,
        timeout=PATIENCE_S,
        env={**os.environ, "CEPH_CONF": str(bed.conf)},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def snapshot(folder: Path) -> dict[str, str | None]:
    """Map each path and attribute that hints may change to its value."""
    names = {p: "ceph.dir" if p.is_dir() else "ceph.file" for p in sorted(folder.rglob("*"))}
    out = {
        f"{p} layout": get(p, f"{kind}.layout")
        for p, kind in names.items()
        if ".tracehint" not in p.parts
    }
    for path in (p for p in names if p.is_dir() and ".tracehint" not in p.parts):
        out |= {f"{path} {pin}": get(path, pin) for pin in PINS}
    return out


def test_a_directory_is_pinned_to_the_rank_of_its_site(
    bed: CephBed, data: Path, tmp_path: Path
) -> None:
    told = HintFile((), {}, (), directories=(FolderHints("parts", {"Metadata": "lyon"}),))
    dump(told, tmp_path / "pins.json")
    (tmp_path / "map.toml").write_text('sites = { paris = "0", lyon = "1" }\n')
    words = (tmp_path / "pins.json", data, "--store", "cephfs", "--map", tmp_path / "map.toml")
    tracehint(bed, "apply", *words, "--as-root")
    assert get(data / "parts", "ceph.dir.pin") == "1"
    tracehint(bed, "verify", *words)
    tracehint(bed, "apply", *words, "--as-root", "--undo")
    assert get(data / "parts", "ceph.dir.pin") == "-1"


def test_the_map_is_found(bed: CephBed, tmp_path: Path) -> None:
    """Derived from the nodes' own pools; hosts without such pools give an empty map."""
    script = (
        "import sys; from pathlib import Path\n"
        "from tracehint.adapters.project.discover import map_text\n"
        "print(map_text('cephfs', Path(), sys.argv[1:]))"
    )
    env = {**os.environ, "CEPH_CONF": str(bed.conf)}
    for hosts in ((["A", "B.site"]), ["elsewhere"]):
        words = bed.command(sys.executable, "-c", script, *hosts)
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE_S)
        (tmp_path / "map.toml").write_text(done.stdout)
        found = load_places(tmp_path / "map.toml")
        known = ("node_{host}", ("node_A", "node_B")) if "A" in hosts else ("", ())
        assert (found.local, tuple(found.groups)) == known, done


class TestWhatTheTableSays:
    """Properties of CephFS on which the adapter is built."""

    def test_a_layout_needs_a_file_without_data(self, data: Path) -> None:
        file = data / "big.dat"
        os.setxattr(file, "ceph.file.layout.pool", b"node_B")
        os.setxattr(file, "ceph.file.layout", b"stripe_unit=65536 stripe_count=1 object_size=65536")
        assert get(file, "ceph.file.layout.pool") == "node_B", "a striping keeps the pool"
        file.write_bytes(b"x")
        with pytest.raises(OSError, match="not empty"):
            os.setxattr(file, "ceph.file.layout.pool", b"node_A")
        os.truncate(file, 0)
        with pytest.raises(OSError, match="not empty"):
            os.setxattr(file, "ceph.file.layout.pool", b"node_A")

    def test_a_files_layout_cannot_be_removed(self, data: Path) -> None:
        with pytest.raises(OSError, match="No data"):
            os.removexattr(data / "big.dat", "ceph.file.layout")

    @pytest.mark.parametrize("value", [b"meta", b"nosuch"])
    def test_only_data_pools(self, data: Path, value: bytes) -> None:
        fd = os.open(data / "big.dat", os.O_RDONLY)
        try:
            with pytest.raises(OSError, match="not a data pool"):
                CephFs(Places()).write(fd, "ceph.file.layout.pool", value)
        finally:
            os.close(fd)

    @pytest.mark.parametrize(("unit", "size"), [(65537, 65537), (65536, 98304)])
    def test_sizes_are_multiples(self, data: Path, unit: int, size: int) -> None:
        layout = b"stripe_unit=%d stripe_count=1 object_size=%d" % (unit, size)
        with pytest.raises(OSError, match="Invalid"):
            os.setxattr(data / "big.dat", "ceph.file.layout", layout)

    def test_a_directory_hands_down_its_pool(self, bed: CephBed, data: Path) -> None:
        os.setxattr(data / "parts", "ceph.dir.layout.pool", b"node_C")
        (data / "parts" / "new").write_bytes(b"x" * 100)
        assert get(data / "parts" / "new", "ceph.file.layout.pool") == "node_C"
        assert get(data / "parts" / "p_0.dat", "ceph.file.layout.pool") == "data"

    def test_a_pin_of_minus_one_is_none(self, data: Path) -> None:
        assert get(data / "parts", "ceph.dir.pin") == "-1"
        assert get(data / "parts", "ceph.dir.pin.distributed") == "0"


class TestCommands:
    """tracehint's commands on the store."""

    def test_apply_verify_undo(self, bed: CephBed, data: Path, tmp_path: Path) -> None:
        hints = save(tmp_path, *RULES)
        words = [hints, "--store", "cephfs", "--map", tmp_path / "map.toml", data]
        before = snapshot(data)
        tracehint(bed, "verify", *words, code=1)
        tracehint(bed, "apply", *words, "--as-root")
        pool = get(data / "parts" / "p_0.dat", "ceph.file.layout.pool")
        assert pool in ("node_A", "node_B", "node_C")
        assert get(data / "parts", "ceph.dir.layout.pool") == pool
        assert get(data / "parts", "ceph.dir.pin") in ("0", "1")
        assert get(data / "many" / "1", "ceph.dir.pin.distributed") == "1"
        assert "stripe_unit=131072 " in (get(data / "big.dat", "ceph.file.layout") or "")
        tracehint(bed, "verify", *words)
        assert "0 settings set" in tracehint(bed, "apply", *words, "--as-root")
        tracehint(bed, "apply", *words, "--as-root", "--undo")
        assert snapshot(data) == before

    def test_undo_leaves_what_holds_data(self, bed: CephBed, data: Path, tmp_path: Path) -> None:
        hints = save(tmp_path, *RULES)
        words = [hints, "--store", "cephfs", "--map", tmp_path / "map.toml", data, "--as-root"]
        tracehint(bed, "apply", *words)
        (data / "big.dat").write_bytes(b"x" * 200_000)
        assert "it holds data" in tracehint(bed, "apply", *words, "--undo")

    def test_the_script_does_the_same(self, bed: CephBed, data: Path, tmp_path: Path) -> None:
        hints = save(tmp_path, *RULES, rule("mine.dat", DP="local"))
        (data / "mine.dat").touch()
        script, places = tmp_path / "set.sh", tmp_path / "map.toml"
        before = snapshot(data)
        tracehint(
            bed, "emit", hints, "--store", "cephfs", "--map", places, "--dir", data, "-o", script
        )
        node = bed.nodes[1]
        there = node.mount / data.name  # the script may run on any node: @host is that node
        for verb in ("set", "unchanged:"):
            done = node.run("sh", script, there)
            assert (done.returncode, done.stderr) == (0, "")
            assert {line.split()[0] for line in done.stdout.splitlines()} == {verb}
        assert get(data / "mine.dat", "ceph.file.layout.pool") == "node_B"
        rules = save(tmp_path, *RULES)
        tracehint(bed, "verify", rules, "--store", "cephfs", "--map", places, data)
        done = node.run("sh", script, "--undo", there)
        assert (done.returncode, done.stderr) == (0, "")
        assert snapshot(data) == before

    def test_a_task_is_tagged_on_its_own_node(
        self, bed: CephBed, data: Path, tmp_path: Path
    ) -> None:
        store = CephFs(Places("node_{host}"))
        targets = [
            TagTarget(path=b"out.dat", kind="C", hints={"DP": "local"}),
            TagTarget(path=b"parts", kind="D", hints={"DP": "local"}),
            TagTarget(path=b"big.dat", kind="F", hints={"DP": "local"}),
        ]
        table, gaps, count = encode([targets], store)
        assert count == 1
        assert len(gaps) == 2
        folder = tmp_path / "tags"
        folder.mkdir()
        for path, text in tag_files(folder, table).items():
            assert path is not None
            path.write_bytes(text)
            path.chmod(0o755)
        node = bed.nodes[3]
        command = f"cd {node.mount / data.name} && {folder}/tag 0 sh -c 'echo x >out.dat'"
        done = node.run("sh", "-c", command)
        assert (done.returncode, done.stderr) == (0, "")
        assert get(data / "out.dat", "ceph.file.layout.pool") == "node_D"


class TestLocate:
    """`locate` computes where the objects actually are."""

    def test_objects_are_those_that_exist(self, bed: CephBed, data: Path) -> None:
        file = data / "big.dat"
        os.setxattr(
            file,
            "ceph.file.layout",
            b"stripe_unit=65536 stripe_count=3 object_size=131072 pool=node_B",
        )
        with file.open("wb") as out:
            out.write(b"x" * 1_000_000)
            out.flush()
            os.fsync(out.fileno())
        found = json.loads(tracehint(bed, "locate", file, "--store", "cephfs", "--format", "json"))
        row = found["files"][0]
        assert row["nodes"] == ["B"]
        listed = bed.head("rados", "-c", bed.conf, "-p", "node_B", "ls").stdout.split()
        ours = [name for name in listed if name.startswith(f"{file.stat().st_ino:x}.")]
        assert row["detail"]["objects"] == len(ours) == row["detail"]["copies"]["B"]

    def test_copies_and_spread_objects(self, bed: CephBed, data: Path) -> None:
        os.setxattr(data / "big.dat", "ceph.file.layout.pool", b"copies_2")
        (data / "big.dat").write_bytes(b"x" * (20 << 20))
        (data / "parts" / "p_0.dat").write_bytes(b"x" * (40 << 20))
        names = [data / "big.dat", data / "parts" / "p_0.dat"]
        two, one = bed.where(names).values()
        assert sum(two.values()) == 10
        assert sum(one.values()) == 10
        assert len(one) > 1, "objects are spread"

    def test_many_files_are_one_question(self, bed: CephBed, data: Path) -> None:
        for i in range(20):
            (data / "parts" / f"p_{i}.dat").write_bytes(b"x" * 1000 * i)
        names = [data / "parts" / f"p_{i}.dat" for i in range(20)]
        said = tracehint(bed, "locate", *names, "--store", "cephfs", "--format", "json", code=1)
        rows = json.loads(said)["files"]
        assert [len(row["nodes"]) for row in rows] == [0, *[1] * 19]
        one = json.loads(
            tracehint(bed, "locate", names[7], "--store", "cephfs", "--format", "json")
        )
        assert one["files"] == [rows[7]]
        said = tracehint(bed, "locate", names[7], data / "no", "--store", "cephfs", code=1)
        assert "p_7.dat: " in said
        assert "No such file" in said

    def test_an_empty_file_is_nowhere(self, bed: CephBed, data: Path) -> None:
        said = tracehint(bed, "locate", data / "big.dat", "--store", "cephfs", code=1)
        assert "unknown" in said
