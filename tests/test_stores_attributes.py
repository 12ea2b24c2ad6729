"""Stores defined by a table of attributes: each row is checked by the attributes that it sets."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tracehint.adapters.stores.commands import CommandStore
from tracehint.adapters.stores.document_stores import DocumentStore
from tracehint.adapters.stores.registry import names, open_store
from tracehint.adapters.stores.table import TableStore

PLAIN = {
    "DP=local": "local", "DP=collocation": "collocation|g", "Replication": "3",
    "ReplicationSemantics": "optimistic", "BlockSize": "65536", "CacheSize": "1048576",
}  # fmt: skip  # a table
MORE = {
    "DP=distribute": "distribute|g", "Access": "random", "Lifetime": "temporary|mAdd",
    "LastReader": "mAdd",
}  # fmt: skip  # a table
SCATTERED = {"DP": "scatter|4", "BlockSize": "65536"}
STRIP = {"user.pvfs2.dist_name": "simple_stripe"}


def _same(prefix: str, rows: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return rows whose attributes equal the neutral hint, with a prefix."""
    said = {row: {prefix + row.partition("=")[0]: value} for row, value in rows.items()}
    return {**said, "DP=scatter": {prefix + name: value for name, value in SCATTERED.items()}}


# store -> row -> attributes of a directory
SETS: dict[str, dict[str, dict[str, str]]] = {
    "xattr": {**_same("user.", PLAIN | MORE), "Metadata": {"user.Metadata": "local|s"}},
    "woss": _same("", PLAIN),
    "orangefs": {
        "DP=local": {"user.pvfs2.layout": "5"},
        "DP=scatter": {
            **STRIP, "user.pvfs2.dist_params": "strip_size:262144", "user.pvfs2.layout": "2",
        },
        "BlockSize": {**STRIP, "user.pvfs2.dist_params": "strip_size:65536"},
    },
}  # fmt: skip  # a table
ONLY_DIRECTORIES = {("xattr", "Metadata"), *(("orangefs", row) for row in SETS["orangefs"])}


def _hints(row: str) -> dict[str, str]:
    if row == "DP=scatter":
        return SCATTERED
    return {row.partition("=")[0]: {**PLAIN, **MORE, "Metadata": "local|s"}[row]}


@pytest.mark.parametrize(("name", "row"), [(n, r) for n, rows in SETS.items() for r in rows])
def test_a_row_sets_these_attributes(name: str, row: str) -> None:
    store = open_store(name)
    for kind in ("file", "directory"):
        settings, _ = store.translate(_hints(row), kind)  # type: ignore[arg-type]
        silent = kind == "file" and (name, row) in ONLY_DIRECTORIES
        wanted = {} if silent else SETS[name][row]
        assert {s.key: s.value.decode() for s in settings} == wanted


def test_every_row_of_every_table_of_attributes_stands_above() -> None:
    """The check covers both directions: removed rows and new rows fail the test."""
    for name in names():
        store = open_store(name)
        if isinstance(store, TableStore):
            said = {k for k, row in store.capabilities().items() if row.level != "none"}
            assert said == SETS.get(name, {}).keys(), name


def test_every_store_belongs_to_a_family_whose_rows_are_checked() -> None:
    """Attributes in this file, calls and documents in their own files, the rest by name."""
    by_name = {"cephfs", "moosefs"}  # tests/test_cephfs.py, tests/test_moosefs.py
    known = (TableStore, CommandStore, DocumentStore)
    assert {n for n in names() if not isinstance(open_store(n), known)} == by_name
