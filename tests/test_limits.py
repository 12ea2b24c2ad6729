"""Small files that expand to much data, and invalid numbers, are rejected with a message that names
an adjustable limit."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.bundles import RunBuilder
from tests.support.hints import rule, save
from tests.test_engine_graphs import JOBLOG, instance
from tracehint.adapters.engines.graphs import read_graph
from tracehint.adapters.engines.makeflow.workflow import read_workflow
from tracehint.adapters.stores.registry import load_table
from tracehint.analyzer.model import Options
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.hintfile import load
from tracehint.hintgen.inputs import load_run
from tracehint.hintgen.text.textfile import TextFile
from tracehint.limits import LIMITS, limit
from tracehint.schemas.store import read_bundle

ROOT = Path(__file__).parent.parent


def hint_json(folder: Path, **formula: Any) -> dict[str, Any]:
    """Return the JSON of a hint file with one rule whose hint has this formula."""
    path = save(folder, rule("out_{n}.dat", Replication=3))
    data: dict[str, Any] = json.loads(path.read_text())
    data["rules"][0]["hints"][0]["formula"] = formula
    return data


def put(data: dict[str, Any], where: str, value: str) -> str:
    """Return the JSON text with `value` inserted verbatim at a dotted path."""
    *path, last = where.split(".")
    inner: Any = data
    for step in path:
        inner = inner[int(step)] if step.isdigit() else inner[step]
    inner[last] = "@@"
    return json.dumps(data).replace('"@@"', value)


HINT = "rules.0.hints.0"
CRAFTED = [
    (f"{HINT}.formula.per", "1e400"), (f"{HINT}.formula.per", "1" + "0" * 400),
    (f"{HINT}.formula.per", "1e-320"), (f"{HINT}.formula.per", "NaN"),
    (f"{HINT}.formula.step", "0.5"), (f"{HINT}.formula.step", "1e18"),
    (f"{HINT}.formula.counts", '[["in_{n}", 1e300, 1e300]]'),
    (f"{HINT}.formula.prefix", '"\\ud800"'), ("rules.0.id", '"\\udfff"'),
    ("rules.0.evidence.bytes", "1e400"), ("rules.0.evidence.files", "1" + "0" * 400),
    ("rules.0.evidence.saves_bytes", "-Infinity"), ("rules.0.confidence", "1" + "0" * 400),
    (f"{HINT}.value", '"1|9"'), ("rules.0.conditions.min_size_bytes", "1" + "0" * 5000),
]  # fmt: skip  # a table


@pytest.mark.parametrize(("where", "value"), CRAFTED)
def test_crafted_numbers_and_texts_of_hint_files_are_refused(
    tmp_path: Path, where: str, value: str
) -> None:
    fn = "region" if "step" in where else "group" if "prefix" in where else "replicas"
    text = put(hint_json(tmp_path, fn=fn), where, value)
    (tmp_path / "crafted.json").write_text(text)
    with pytest.raises(InputError) as caught:
        load(tmp_path / "crafted.json")
    assert caught.value.remedy


def test_a_formula_for_numbers_needs_a_number(tmp_path: Path) -> None:
    path = save(tmp_path, rule("out_{n}.dat", DP="local"))
    data = json.loads(path.read_text())
    data["rules"][0]["hints"][0]["formula"] = {"fn": "replicas", "per": 3}
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="is not a number"):
        load(path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_packed_file_unpacks_to_a_likely_size(
    tmp_path: Path, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracehint.adapters.engines.unpack._ALWAYS_ALLOWED", 1 << 16)
    header = JOBLOG.split("\n", 1)[0].encode()
    line = b"1\t:\t1700000000.5\t1.0\t0\t0\t0\t0\t" + b"x" * (1 << 20)
    (tmp_path / "jobs").write_bytes(pack(header + b"\n" + line))
    with pytest.raises(InputError, match="200 times the packed size") as caught:
        read_graph(tmp_path / "jobs", "parallel")
    assert "TRACEHINT_LIMITS=unpack-ratio=N" in caught.value.remedy
    monkeypatch.setenv("TRACEHINT_LIMITS", "unpack-ratio=100_000")
    assert read_graph(tmp_path / "jobs", "parallel").tasks.num_rows == 1


def wfformat(tasks: str) -> str:
    whole = json.dumps(instance("1.5"))
    return re.sub(r'"tasks": \[', lambda m: m[0] + tasks, whole, count=1)


def lists(count: int) -> str:
    return "[" + ",".join(["[]"] * count) + "]"


# limit, engine or reader, file name, text
SMALL: list[tuple[str, str, str, str]] = [
    ("line-bytes=100", "parallel", "j.log", JOBLOG + "1\t:\t1\t1\t0\t0\t0\t0\t" + "x" * 200 + "\n"),
    ("rows=10", "parallel", "j.log", JOBLOG + "x\n" * 20),
    ("strange-rows=5", "wfformat", "i.json", wfformat("[]," * 20)),
    ("item-bytes=100", "wfformat", "i.json", wfformat('"' + "x" * (9 << 20) + '",')),
    ("json-values=50", "wfformat", "i.json", wfformat(lists(2_500_000) + ",")),
    ("json-values=50", "makeflow", "w.json", '{"rules": ' + lists(100) + "}"),
    ("json-values=50", "snakemake", "d.json", '{"nodes": ' + lists(100) + ', "edges": []}'),
    ("workflow-rules=5", "makeflow", "w.json", '{"rules": [' + '{"command": "x"},' * 9 + "{}]}"),
    ("workflow-rules=5", "makeflow", "w.mf", "".join(f"o{k}:\n\ttrue\n" for k in range(9))),
    ("yaml-values=50", "pegasus", "w.yml", "x-pegasus: {}\njobs:\n" + "- [] \n" * 50),
    ("text-bytes=50", "makeflow", "w.mf", "# " + "x" * 100),
]


@pytest.mark.parametrize(("limits", "engine", "name", "text"), SMALL, ids=lambda v: v[:20])
def test_every_reader_of_graphs_stops_at_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: str, engine: str, name: str, text: str
) -> None:
    monkeypatch.setenv("TRACEHINT_LIMITS", limits)
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        read_graph(tmp_path / name, engine)
    assert limits.partition("=")[0] in str(caught.value)


def test_yaml_with_anchors_is_refused_at_the_first(tmp_path: Path) -> None:
    (tmp_path / "w.yml").write_text("jobs:\n" + "".join(f"- &a{k} x\n" for k in range(9)))
    with pytest.raises(InputError, match="anchors are not read"):
        read_graph(tmp_path / "w.yml", "pegasus")


def test_small_files_stop_at_their_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(limits: str, name: str, text: str, read: Callable[[Path], object]) -> None:
        monkeypatch.setenv("TRACEHINT_LIMITS", limits)
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError) as caught:
            read(tmp_path / name)
        assert limits.partition("=")[0] in str(caught.value)

    refuses("toml-values=20", "t.toml", "a = [" + "[]," * 30 + "]", load_table)
    refuses("toml-values=20", "t.toml", ".".join("a" * 30) + " = 1", load_table)
    refuses("small-bytes=20", "t.toml", "# " + "x" * 30, load_table)
    hints = '{"schema": "tracehint.hints/1", "rules": ' + lists(30) + "}"
    refuses("json-values=20", "h.json", hints, load)
    refuses("hints-bytes=20", "h.json", hints, load)
    refuses("hint-rules=1", "h.json", save(tmp_path, rule("a"), rule("b")).read_text(), load)
    refuses("analysis-values=20", "a.json", lists(30), lambda path: load_run(str(path), Options()))
    refuses("names-bytes=20", "w.mf", "# " + "x" * 30, read_workflow)


def bomb(folder: Path, rows: int, command: str = "", **options: Any) -> Path:
    """Write a bundle whose table of losses has this many equal rows."""
    root = RunBuilder().save(folder / "b.trace")
    place = root / "losses" / "host=n1"
    place.mkdir(parents=True, exist_ok=True)
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * rows, pa.int32()), pa.array([command or "x"])
    )
    same = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["n1"]))
    table = pa.table(
        {
            "host": same,
            "proc": pa.nulls(rows, pa.int64()),
            "kind": texts,
            "count": pa.array([1] * rows, pa.int64()),
            "detail": texts,
        }
    )
    pq.write_table(table, place / "0.parquet", compression="zstd", **options)
    return root


def test_a_table_of_many_equal_rows_is_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = bomb(tmp_path, 200_000)
    assert not read_bundle(root).problems
    monkeypatch.setattr("tracehint.schemas.footer._FEW_ROWS", 1000)
    monkeypatch.setenv("TRACEHINT_LIMITS", "bundle-rows-per-byte=5")
    assert "bundle-rows-per-byte" in read_bundle(root).problems[0]
    monkeypatch.setenv("TRACEHINT_LIMITS", "bundle-rows=1000")
    bundle = read_bundle(root)
    assert "200,000 rows (limit bundle-rows)" in bundle.problems[0]
    assert bundle.tables["losses"]["kind"].to_pylist() == ["damaged_segment"]


def test_texts_that_a_dictionary_repeats_are_counted_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand rows of one dictionary value of 1 MB expand to ten gigabytes."""
    root = bomb(tmp_path, 10_000, "x" * 1_000_000)
    monkeypatch.setenv("TRACEHINT_LIMITS", "bundle-text-bytes=1_000_000_000")
    assert "bundle-text-bytes" in read_bundle(root).problems[0]


@pytest.mark.slow
def test_a_footer_that_states_far_more_than_the_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = bomb(tmp_path, 3, "x" * 5_000_000, use_dictionary=False)
    monkeypatch.setattr("tracehint.schemas.footer._FREE", 1 << 20)
    assert "bundle-ratio" in read_bundle(root).problems[0]


@pytest.mark.parametrize("text", ["rows", "rows=", "rows=x", "rows=-1", "nothing=5", "rows=1e9"])
def test_what_is_no_limit_is_said(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TRACEHINT_LIMITS", text)
    with pytest.raises(UsageError, match="is not NAME=N"):
        limit("rows")


def test_limits_are_moved_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEHINT_LIMITS", " rows=5 , match-work=1_000,")
    assert (limit("rows"), limit("match-work")) == (5, 1000)
    assert limit("line-bytes") == LIMITS["line-bytes"].most


def test_every_limit_is_used_by_a_reader() -> None:
    folders = ("schemas", "analyzer", "collectors", "hintgen", "adapters")
    code = "".join(p.read_text() for folder in folders for p in (ROOT / folder).rglob("*.py"))
    assert [name for name in LIMITS if f'"{name}"' not in code] == []


# -- Small files written by others: the same limits and messages for all kinds


KIND = TextFile(kind="A list", limit="small-bytes", check="Check --list.", remedy="Write it anew.")


def test_toml_and_json_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('name = "é"\n', encoding="utf-8")
    (tmp_path / "a.json").write_text("[1]")
    assert KIND.toml(tmp_path / "a.toml") == {"name": "é"}
    assert KIND.json(tmp_path / "a.json") == [1]


@pytest.mark.parametrize("raw", [b"\xff", b"[" * 100_000, b"a = ", b"{", b"a = [" + b"[" * 100_000])
def test_what_cannot_be_parsed_is_said(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "bad"
    path.write_bytes(raw)
    for read, form in ((KIND.toml, "TOML"), (KIND.json, "JSON")):
        with pytest.raises(InputError, match=f"bad is not {form}") as caught:
            read(path)
        assert caught.value.remedy == "Write it anew."


def test_no_more_than_the_limit_is_read_also_where_no_size_is_known(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_text(" " * (4 << 20) + "1")
    for large in (path, Path("/dev/zero")):
        with pytest.raises(InputError, match="more than 4,194,304 bytes"):
            KIND.json(large)
    with pytest.raises(InputError, match="cannot read"):
        KIND.json(tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot read"):
        KIND.toml(tmp_path)
