"""The CephFS adapter's translation (no cluster here)."""

from __future__ import annotations

import pytest

from tracehint.adapters.stores.cephfs import CephFs
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
        ({"BlockSize": str(1 << 40)},
         "stripe_unit=134217728 stripe_count=1 object_size=134217728"),
        ({"BlockSize": "1048576", "DP": "scatter|3"},
         "stripe_unit=3145728 stripe_count=1 object_size=3145728"),
    ],
)  # fmt: skip
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


def test_groups_are_pools_and_local_is_left_out_of_scripts() -> None:
    settings, _ = STORE.translate({"DP": "collocation|g"}, "directory")
    assert settings[0].key == "ceph.dir.layout.pool"
    assert settings[0].value in (b"pool_a", b"pool_b")
    assert STORE.translate({"DP": "local"}, "file")[0]
    assert STORE.scripted().translate({"DP": "local"}, "file")[0] == []


def test_broadcast_is_not_replicated_and_says_why() -> None:
    settings, gaps = STORE.translate({"Replication": "3"}, "file")
    assert settings == []
    assert "do not spread" in gaps[0].reason


@pytest.mark.parametrize("key", ["security.capability", "user.DP", "ceph.quota.max_bytes"])
def test_only_layouts_are_ever_written(key: str) -> None:
    with pytest.raises(UsageError):
        STORE.check_key(key, allow_trusted=True)
