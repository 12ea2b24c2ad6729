"""Reading an Analysis from the directory of `analyze --format parquet`, checked like its JSON."""

from __future__ import annotations

import json
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, NotRequired, get_args, get_origin, get_type_hints

from tracehint.analyzer import catalogue
from tracehint.analyzer.output import document
from tracehint.analyzer.output.json import ORDER, PLACEMENT, VIA, options_of
from tracehint.errors import InputError
from tracehint.limits import check, values_of
from tracehint.schemas.kinds import what_is

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis

RUN = "run.json"
# table -> column -> table that it refers to; None: key of the table itself, unique
_KEYS: dict[str, dict[str, str | None]] = {
    "tasks": {"task": None},
    "files": {"file": None},
    "producers": {"file": "files", "task": "tasks"},
    "consumers": {"file": "files", "task": "tasks"},
    "edges": {"edge": None, "producer": "tasks", "file": "files", "consumer": "tasks"},
    "groups": {"group": None, "task": "tasks", "files": "files"},
    "patterns": {"file": "files", "edge": "edges", "group": "groups"},
}
_KEY_COLUMN = {"tasks": "task", "files": "file", "edges": "edge", "groups": "group"}
_MAY_BE_NULL = {("patterns", "edge"), ("patterns", "group")}
# table -> column -> allowed values
_WORDS = {
    "edges": {"via": VIA, "order": ORDER},
    "groups": {"pattern": catalogue.GROUPED},
    "patterns": {"pattern": catalogue.NAMES},
}


# table -> declaration of its rows in the JSON document
_ROWS: dict[str, Any] = {
    "tasks": document.TaskRow,
    "files": document.FileRow,
    "producers": document.ProducerRow,
    "consumers": document.ConsumerRow,
    "edges": document.EdgeRow,
    "groups": document.GroupRow,
}


def is_tables(path: Path) -> bool:
    """Whether `path` is a directory with the tables of an analysis, not a bundle."""
    try:
        return what_is(path) == "analysis" and path.is_dir()
    except (OSError, ValueError):
        return False


def from_tables(folder: Path) -> Analysis:
    """Read an analysis from a directory. Raises InputError if it is damaged or not an analysis."""
    import pyarrow as pa

    from tracehint.analyzer.model import ANALYSIS_TABLES, Analysis

    try:
        text = (folder / RUN).read_bytes()
        check("json-values", str(folder / RUN), values_of(text))
        run = json.loads(text)
        tables = {
            name: _read_table(folder / f"{name}.parquet", ANALYSIS_TABLES[name]) for name in _KEYS
        }
        _check(tables)
        return Analysis(run=run, options=options_of(run), **tables)
    except (
        OSError,
        pa.ArrowException,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
    ) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{folder}: cannot be read as an analysis: {first[:200]}",
            "Write it again: tracehint analyze BUNDLE --format parquet -o DIR --force",
        ) from None


def _read_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Read one table; the column `ranges` is null if it was omitted."""
    import pyarrow as pa

    from tracehint.schemas.compact import open_parquet
    from tracehint.schemas.footer import check_texts

    wanted = schema
    if "ranges" in schema.names and not _has_ranges(path):
        wanted = schema.remove(schema.get_field_index("ranges"))
    with open_parquet(path, wanted) as source:
        table = source.read(columns=wanted.names).select(wanted.names)
    for name in wanted.names:
        check_texts(table.column(name), name)
    columns = [
        table.column(f.name).cast(f.type)
        if f.name in wanted.names
        else pa.chunked_array([pa.nulls(table.num_rows, f.type)])
        for f in schema
    ]
    found = pa.table(columns, schema=schema)
    found.validate(full=True)
    return found


def _has_ranges(path: Path) -> bool:
    import pyarrow.parquet as pq

    return "ranges" in pq.read_schema(path).names


def _check(tables: dict[str, pa.Table]) -> None:
    """Raise ValueError for dangling references, missing values, and values that the JSON does not
    allow."""
    for name, row in _ROWS.items():
        _check_values(tables[name], name, row)
    for name, keys in _KEYS.items():
        for column, other in keys.items():
            _check_key(tables, name, column, other)
        for column, words in _WORDS.get(name, {}).items():
            for word in _distinct(tables[name], column):
                if word not in words:
                    raise ValueError(f"{name}: {word!r} is not one of {', '.join(words)}")
    for word in _distinct(tables["patterns"], "placement") | _distinct(
        tables["patterns"], "runner_up"
    ):
        if not PLACEMENT.fullmatch(word or ""):
            raise ValueError(f"{word!r} is not a placement")
    for name in ("patterns", "groups"):
        for text in _distinct(tables[name], "evidence"):
            if not isinstance(json.loads(text or "null"), dict):
                raise ValueError(f"{name}: evidence is not a JSON object")


def _check_values(table: pa.Table, name: str, row: Any) -> None:
    """Raise ValueError for nulls in columns whose JSON field is neither nullable nor optional."""
    types, required = get_type_hints(row), get_type_hints(row, include_extras=True)
    for column in types.keys() & set(table.column_names):
        optional = get_origin(required[column]) is NotRequired or NoneType in get_args(
            types[column]
        )
        if table.column(column).null_count and not optional:
            raise ValueError(f"{name}: column {column} has rows without a value")


def _check_key(tables: dict[str, pa.Table], name: str, column: str, other: str | None) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = tables[name].column(column)
    if values.null_count and (name, column) not in _MAY_BE_NULL:
        raise ValueError(f"{name}: column {column} has rows without a value")
    if pa.types.is_list(values.type):
        values = pc.list_flatten(values)
    if other is None:
        if pc.count_distinct(values).as_py() != len(values):
            raise ValueError(f"{name}: column {column} has duplicate numbers")
        return
    known = tables[other].column(_KEY_COLUMN[other])
    if pc.any(pc.invert(pc.is_in(values.drop_null(), value_set=known))).as_py():
        raise ValueError(f"{name}: column {column} refers to rows missing from {other}")


def _distinct(table: pa.Table, column: str) -> set[Any]:
    return set(table.column(column).unique().to_pylist())
