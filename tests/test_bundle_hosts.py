"""Rows of many hosts are written host by host, in their order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tracehint.schemas.store import table_from_rows
from tracehint.schemas.writer import BundleWriter


def test_each_host_has_its_rows_in_order(tmp_path: Path) -> None:
    hosts = ["b", "a", "b", "c", "a", "b"]
    rows = [{"host": host, "kind": "x", "count": n} for n, host in enumerate(hosts)]
    table = table_from_rows("losses", rows)
    BundleWriter(tmp_path / "r.trace").write_table("losses", table)
    for host in "abc":
        path = tmp_path / "r.trace" / "losses" / f"host={host}" / "0.parquet"
        counts = pq.read_table(path, partitioning=None)["count"].to_pylist()
        assert counts == [n for n, name in enumerate(hosts) if name == host]


def test_no_rows_make_no_files(tmp_path: Path) -> None:
    table = table_from_rows("losses", [])
    BundleWriter(tmp_path / "r.trace").write_table("losses", table)
    assert not (tmp_path / "r.trace" / "losses").exists()
    assert isinstance(table, pa.Table)
