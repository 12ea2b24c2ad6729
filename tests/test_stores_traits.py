"""Properties of each store's table besides arguments: when rows act, dependencies, bounds.

Taken from the stores' manuals, not from the tables (docs/reference/stores.md lists them).
"""

from __future__ import annotations

import pytest

from tracehint.adapters.stores.commands import CommandStore
from tracehint.adapters.stores.registry import TABLES, open_store
from tracehint.adapters.stores.table import TableStore

GIB = 1 << 30
DIRECTORY, ANY, NEW = ("directory",), ("any",), ("creation",)
BOTH = ("creation", "any")
AS_FILES = {"DP=scatter": ("BlockSize",)}

# store -> mounted, its tool, rows by the time when they act, bounds of its numbers
TRAITS: dict[str, tuple[bool, str, dict[str, tuple[str, ...]], dict[str, tuple[int, int]]]] = {
    "alluxio": (False, "alluxio", {"Replication": ANY, "CacheSize": ANY}, {"copies": (1, 100)}),
    "beegfs7": (True, "beegfs-ctl",
        dict.fromkeys(("DP=collocation", "DP=scatter", "Replication", "BlockSize"), DIRECTORY),
        {"chunk": (65536, 2 * GIB), "region_chunk": (65536, 2 * GIB)}),
    "beegfs8": (True, "beegfs",
        dict.fromkeys(("DP=collocation", "DP=scatter", "Replication", "BlockSize"), DIRECTORY),
        {"chunk": (65536, 2 * GIB), "region_chunk": (65536, 2 * GIB)}),
    "confuga": (False, "chirp", {"Replication": ANY}, {"copies": (1, 100)}),
    "daos": (True, "daos",
        dict.fromkeys(("DP=collocation", "DP=scatter", "Replication", "BlockSize"), DIRECTORY),
        {"copies": (1, 6)}),
    "dcache": (False, "chimera", {"DP=collocation": DIRECTORY}, {}),
    "eos": (False, "eos", {"DP=collocation": DIRECTORY, "Replication": DIRECTORY},
        {"copies": (1, 16)}),
    "hdfs": (False, "hdfs", {"Replication": ANY, "Access": BOTH}, {"copies": (1, 512)}),
    "xrootd": (False, "xrdfs", {"DP=collocation": ANY}, {}),
    "orangefs": (True, "pvfs2-viewdist",
        dict.fromkeys(("DP=local", "DP=scatter", "BlockSize"), DIRECTORY), {}),
    "woss": (True, "", {
        **dict.fromkeys(("DP=local", "DP=collocation", "DP=scatter", "Replication",
                         "ReplicationSemantics", "BlockSize"), NEW), "CacheSize": ANY}, {}),
    "xattr": (True, "", {
        **dict.fromkeys(("DP=local", "DP=collocation", "DP=scatter", "DP=distribute",
                         "ReplicationSemantics", "BlockSize"), NEW),
        "Replication": BOTH,
        **dict.fromkeys(("CacheSize", "Access", "Lifetime", "LastReader", "Metadata"), ANY)}, {}),
    **dict.fromkeys(("glusterfs", "local", "nfs", "unifyfs"), (True, "", {}, {})),
}  # fmt: skip  # a table
# rows determined by another row of the same file
_SCATTER = {"BlockSize": "DP=scatter"}
YIELDS = {
    "beegfs7": _SCATTER, "beegfs8": _SCATTER, "orangefs": _SCATTER,
    "daos": {**_SCATTER, "Replication": "DP=scatter"},
}  # fmt: skip  # a table
NODES = {"woss": "location", "xattr": "user.location"}  # attribute that contains a file's nodes
# values of enumerated words
CHOICES = {
    ("alluxio", "medium"): "MEM|SSD|HDD", ("beegfs7", "pattern"): "raid0|buddymirror",
    ("beegfs8", "pattern"): "raid0|mirrored", ("eos", "layout"): "plain|replica",
    ("hdfs", "policy"): "HOT|ONE_SSD|ALL_SSD", ("xrootd", "together"): "c",
}  # fmt: skip  # a table


def tables() -> list[str]:
    """Return the stores defined by a TOML file."""
    return sorted(path.stem for path in TABLES.glob("*.toml"))


@pytest.mark.parametrize("name", tables())
def test_a_table_promises_this(name: str) -> None:
    store = open_store(name)
    mounted, tool, acts, bounds = TRAITS[name]
    assert store.name == name
    assert list(store.about.tools) == ([tool] if tool else [])
    said = {k: row for k, row in store.capabilities().items() if row.level != "none"}
    assert {k: row.acts for k, row in said.items()} == acts
    assert all(row.level == "full" or row.how for row in store.capabilities().values())
    assert isinstance(store, CommandStore | TableStore)
    grids = {k: (f.least, f.most) for k, f in store.fields.items() if not f.map}
    assert grids == bounds
    assert {k: r.yields_to for k, r in store.rows.items() if r.yields_to} == YIELDS.get(name, {})
    needs = {k: row.needs for k, row in store.rows.items() if row.needs}
    assert needs == (AS_FILES if "DP=scatter" in acts and name not in NODES else needs)
    if isinstance(store, CommandStore):
        assert store.mounted == mounted
        kinds = {w: one.kind for c in store.commands.values() for w, one in c.words.items()}
        chosen = {w: k for w, k in kinds.items() if k not in ("count", "size", "name", "class")}
        assert chosen == {w: k for (store_, w), k in CHOICES.items() if store_ == name}
    else:
        assert store.location == NODES.get(name, "")


def test_every_table_stands_above() -> None:
    assert TRAITS.keys() == set(tables())
