"""Cluster files: every key has limits, and what is wrong is named with what would be right."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehint.analyzer.predict.cluster_fields import TABLES, Flag, Number, Word
from tracehint.analyzer.predict.cluster_file import parse_cluster, read_cluster, ready_made
from tracehint.analyzer.predict.machine import build
from tracehint.analyzer.predict.sampling import drawn, interval
from tracehint.errors import InputError

LEAST = "[nodes]\ncount = 2\ncores = 1\nlink_mbit = 1000\n"
BASE = 'base = "moosefs"\n'


@pytest.mark.parametrize("name", ready_made())
def test_ready_made_clusters_read(name: str) -> None:
    cluster = read_cluster(name)
    assert cluster.name == name and cluster.count == 5
    machine = build(cluster, 1)
    assert machine.servers and len(machine.hosts) >= 5


def test_a_base_gives_what_is_not_said() -> None:
    cluster = parse_cluster('base = "cephfs"\n[nodes]\ncount = 9\n[store]\ncopies = 2\n', "x.toml")
    assert cluster.count == 9 and cluster.store["copies"] == 2
    assert cluster.store.words["law"] == "random" and cluster.name == "x"


def test_a_range_has_a_middle() -> None:
    cluster = parse_cluster(BASE + "[store]\nopen_ms = [1, 3]\ncreate_ms = [1, 1.5, 4]\n", "x")
    opened, made = cluster.store.numbers["open_ms"], cluster.store.numbers["create_ms"]
    assert (opened.low, opened.value, opened.high) == pytest.approx((1e-3, 2e-3, 3e-3))
    assert made.value == pytest.approx(1.5e-3)
    assert [made.at(p) for p in (0, 0.5, 1)] == pytest.approx([1e-3, 1.5e-3, 4e-3])


def test_classes_of_nodes_keep_their_share() -> None:
    text = LEAST + "\n".join(["[[nodes]]\ncount = 4\ncores = 8\nlink_mbit = 100"])
    cluster = parse_cluster(text.replace("[nodes]\n", "[[nodes]]\n"), "x")
    assert cluster.count == 6
    assert [int(part["count"]) for part in cluster.with_nodes(12).nodes] == [4, 8]
    assert len(build(cluster, 1).hosts) == 6


WRONG = [
    ("", "nodes.cores: is missing"), ("x = 1", "x: is not known"), ("[nodes", "is not TOML"),
    ("nodes = 3", "nodes: is not a table"), ("nodes = []", "nodes: has 0 tables"),
    ("[nodes]\ncount = 0\ncores = 1\nlink_mbit = 1", "nodes.count: is 0"),
    ("[nodes]\ncount = -1\ncores = 1\nlink_mbit = 1", "nodes.count: is -1"),
    ("[nodes]\ncount = 1.5\ncores = 1\nlink_mbit = 1", "nodes.count: is 1.5"),
    ("[nodes]\ncount = [1, 2]\ncores = 1\nlink_mbit = 1", "nodes.count: is [1, 2]"),
    ("[nodes]\ncount = 1\ncores = 1\nlink_mbit = 0", "nodes.link_mbit: is 0"),
    ("[nodes]\ncount = 1\ncores = 1\nlink_mbit = inf", "nodes.link_mbit: is inf"),
    ("[nodes]\ncount = 1\ncores = 1\nlink_mbit = 1e300", "nodes.link_mbit: is 1e+300"),
    ('[nodes]\ncount = 1\ncores = 1\nlink_mbit = "1"', "nodes.link_mbit: is '1'"),
    (LEAST + "[store]\nchunk_mb = true", "store.chunk_mb: is True"),
    (LEAST + "[store]\nwarm = 1", "store.warm: is 1"),
    (LEAST + '[store]\nlaw = "any"', "store.law: is 'any'"),
    (LEAST + "[store]\ncopies = 65", "store.copies: is 65"),
    (LEAST + "[store]\nopen_ms = [3, 1]", "store.open_ms: is [3, 1]"),
    (LEAST + "[store]\nopen_ms = [1, 2, 3, 4]", "store.open_ms: is [1, 2, 3, 4]"),
    (LEAST + "cors = 2", "Did you mean cores?"),
    (LEAST + 'site = "a"', "site: 'a' is none of [[sites]]"),
    (LEAST + '[store]\nservers = "apart"', "servers: is missing"),
    ('base = "gpfs"', "base: is 'gpfs'"), ("base = 3", "base: is 3"),
    ('name = "../x"\n' + LEAST, "name: '../x'"),
    ('[[sites]]\nname = "a"\n' + LEAST, "sites.up_mbit: is missing"),
    (LEAST + 'host = "a"', "host: 'a' is none of [[hosts]]"),
    (LEAST + '[[hosts]]\nname = "a"', "hosts.processors: is missing"),
    (LEAST + "[[hosts]]\nprocessors = 1", "hosts.name: is missing"),
    (LEAST + '[[hosts]]\nname = "a"\nprocessors = 0', "hosts.processors: is 0"),
    (LEAST + '[[hosts]]\nname = "a"\nprocessors = 1\n[[hosts]]\nname = "a"\nprocessors = 1',
        "hosts.name: is there twice"),
    ("a = " + "[" * 5000, "is not TOML"),
    ("[[nodes]]\ncount = 9000\ncores = 1\nlink_mbit = 1\n" * 2, "18000 in all is too many"),
]  # fmt: skip  # a table


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        parse_cluster(text, "x.toml")
    assert said in str(error.value) and "x.toml" in str(error.value) and error.value.remedy


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_bytes(b"#" * (1 << 20) + b"##")
    for name, said in (("binary", "not UTF-8"), ("large", "larger than"), ("none", "moosefs")):
        with pytest.raises(InputError, match=said):
            read_cluster(tmp_path / name)


def test_every_key_is_tried_at_and_beyond_its_limits() -> None:
    for table, (fields, _) in TABLES.items():
        for key, field in fields.items():
            if not isinstance(field, Number) or table in ("sites", "links", "servers", "hosts"):
                continue
            for value, good in ((field.least, True), (field.most * 2 + 1, False)):
                own = LEAST.replace(f"{key} =", "#") if table == "nodes" else LEAST + f"[{table}]\n"
                text = f"{own}{key} = {value!r}\n"
                if good:
                    parse_cluster(text, "x")
                    continue
                with pytest.raises(InputError, match=f"{table}.{key}: is"):
                    parse_cluster(text, "x")


@given(st.text(max_size=200))
def test_any_text_is_a_cluster_or_an_error(text: str) -> None:
    try:
        parse_cluster(LEAST + text, "x")
    except InputError as error:
        assert error.remedy


def test_the_default_of_every_key_is_allowed() -> None:
    for fields, _ in TABLES.values():
        for key, field in fields.items():
            if isinstance(field, Number) and field.default is not None:
                assert field.least <= field.default <= field.most, key
            if isinstance(field, Word) and field.choices:
                assert field.default in field.choices, key
            assert isinstance(field, Flag | Number | Word) and field.meaning


def test_draws_stay_within_the_ranges() -> None:
    cluster = parse_cluster(BASE + "[nodes]\nlink_mbit = [100, 200]\n", "x")
    rates = {drawn(cluster, seed).nodes[0]["link_mbit"] / 125_000 for seed in range(1, 50)}
    assert min(rates) >= 100 and max(rates) <= 200 and len(rates) == 49
    assert drawn(cluster, 0) is cluster and drawn(cluster, 7) == drawn(cluster, 7)


def test_an_interval_holds_its_runs() -> None:
    low, high = interval([9.0, 10.0, 11.0], 0.1)
    assert low < 9 and high > 11 and math.isclose(low + high, 20)
    assert interval([10.0], 0.1) == pytest.approx((9, 11))
