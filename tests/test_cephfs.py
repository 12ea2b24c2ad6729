"""The CephFS adapter's translation; test_cephfs_real.py runs it on a cluster."""

from __future__ import annotations

import pytest

from tracehint.adapters.stores.base import script_value
from tracehint.adapters.stores.cephfs import CephFs, Striping, objects
from tracehint.adapters.stores.places import Places
from tracehint.errors import UsageError

STORE = CephFs(Places("node_{host}", ("pool_a", "pool_b")))


@pytest.mark.parametrize(
    ("hints", "layout"),
    [
        ({"BlockSize": "65536"}, "stripe_unit=65536 stripe_count=1 object_size=4194304"),
        ({"BlockSize": "1"}, "stripe_unit=65536 stripe_count=1 object_size=4194304"),
        ({"BlockSize": "65537"}, "stripe_unit=131072 stripe_count=1 object_size=4194304"),
        ({"BlockSize": "6291456"}, "stripe_unit=6291456 stripe_count=1 object_size=6291456"),
        ({"BlockSize": str(1 << 40)}, "stripe_unit=134217728 stripe_count=1 object_size=134217728"),
        (
            {"BlockSize": "1048576", "DP": "scatter|3"},
            "stripe_unit=3145728 stripe_count=1 object_size=3145728",
        ),
    ],
)
def test_layouts_obey_cephs_rules(hints: dict[str, str], layout: str) -> None:
    settings, _ = STORE.translate(hints, "file")
    assert [(s.key, s.value.decode()) for s in settings] == [("ceph.file.layout", layout)]
    fields = dict(part.split("=") for part in layout.split(" "))
    unit, size = int(fields["stripe_unit"]), int(fields["object_size"])
    assert unit % 65536 == 0
    assert size % unit == 0
    assert size <= 128 << 20


def test_directories_have_their_own_attribute() -> None:
    settings, _ = STORE.translate({"BlockSize": "65536"}, "directory")
    assert settings[0].key == "ceph.dir.layout"


def test_groups_are_pools_and_the_host_is_left_to_the_script() -> None:
    settings, _ = STORE.translate({"DP": "collocation|g"}, "directory")
    assert settings[0].key == "ceph.dir.layout.pool"
    assert settings[0].value in (b"pool_a", b"pool_b")
    assert STORE.translate({"DP": "local"}, "file")[0]
    (late,), _ = STORE.for_script().translate({"DP": "local"}, "file")
    assert script_value(late) == b"node_@host"
    settings, gaps = STORE.for_script().translate({"DP": "local"}, "directory")
    assert settings == []
    assert "its own node" in gaps[0].reason


def test_broadcast_is_not_replicated_and_says_why() -> None:
    pools = {2: "two", 4: "four"}
    for places in (Places(), Places(copies=pools), Places(reads_spread=True)):
        settings, gaps = CephFs(places).translate({"Replication": "3"}, "file")
        assert settings == []
        assert gaps[0].level == "none"
    _, gaps = CephFs(Places(copies=pools)).translate({"Replication": "3"}, "file")
    assert "from its first copy only" in gaps[0].reason


@pytest.mark.parametrize(("copies", "pool"), [(1, b"two"), (3, b"four"), (9, b"four")])
def test_where_reads_spread_copies_are_a_pool(copies: int, pool: bytes) -> None:
    places = Places(copies={2: "two", 4: "four"}, reads_spread=True)
    settings, _ = CephFs(places).translate({"Replication": str(copies)}, "file")
    assert [(s.key, s.value) for s in settings] == [("ceph.file.layout.pool", pool)]


def test_a_placement_goes_before_copies() -> None:
    places = Places("n_{host}", copies={2: "two"}, reads_spread=True)
    settings, gaps = CephFs(places).translate({"DP": "local", "Replication": "2"}, "file")
    assert [s.hint for s in settings] == ["DP=local"]
    assert [(g.hint, g.reason) for g in gaps] == [("Replication", "DP=local decides the pool")]


def test_pins_where_there_are_several_metadata_servers() -> None:
    store = CephFs(Places(ranks=3))
    for group in ("a", "b", "c"):
        settings, _ = store.translate({"DP": f"collocation|{group}"}, "directory")
        assert settings[0].key == "ceph.dir.pin"
        assert int(settings[0].value) in range(3)
    settings, _ = store.translate({"DP": "distribute|a"}, "directory")
    assert [(s.key, s.value) for s in settings] == [("ceph.dir.pin.distributed", b"1")]
    for hints in ({"DP": "distribute|a"}, {"DP": "collocation|a"}):
        assert store.translate(hints, "file")[0] == []


@pytest.mark.parametrize(
    ("striping", "length", "count"),
    [
        ((4, 1, 4), 0, 0),
        ((4, 1, 4), 1, 1),
        ((4, 1, 4), 4, 1),
        ((4, 1, 4), 5, 2),
        ((4, 3, 8), 12, 3),
        ((4, 3, 8), 8, 2),
        ((4, 3, 8), 24, 3),
        ((4, 3, 8), 25, 4),
        ((4, 3, 8), 33, 6),
        ((4, 3, 8), 48, 6),
        ((1 << 20, 3, 2 << 20), 9 << 20, 6),
    ],
)
def test_objects_of_a_file(striping: tuple[int, int, int], length: int, count: int) -> None:
    """Compared with objects counted one stripe unit at a time."""
    unit, wide, size = striping
    seen = set()
    for block in range(-(-length // unit)):
        row, at = divmod(block, wide)
        seen.add(row // (size // unit) * wide + at)
    assert len(seen) == count
    assert set(objects(Striping(*striping), length)) == seen


@pytest.mark.parametrize("key", ["security.capability", "user.DP", "ceph.quota.max_bytes"])
def test_only_layouts_are_ever_written(key: str) -> None:
    with pytest.raises(UsageError):
        STORE.check_key(key, allow_trusted=True)
