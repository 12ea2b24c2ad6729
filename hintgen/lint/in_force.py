"""The hints that were in force during the run: seen in the trace, or stated by the user."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from tracehint.hintgen.hints.model import HintFile
    from tracehint.schemas.store import Bundle


def add_in_force(
    con: duckdb.DuckDBPyConnection,
    bundle: Bundle | None,
    data_roots: Sequence[str],
    stated: HintFile | None,
) -> None:
    """Fill `in_force`: hints set by `tracehint run`, by setfattr during the run, read from the
    files afterwards, or stated."""
    seen: list[tuple[str, str, str, float | None]] = []
    if bundle is not None:
        seen = [*_set(bundle, data_roots), *_seen(bundle, data_roots), *_read(con, bundle)]
    rows = [*seen, *(_stated(con, stated) if stated is not None else ())]
    if rows:
        con.executemany("INSERT INTO in_force VALUES (?, ?, ?, ?)", rows)
        # A hint on a directory is the default of the files in it.
        con.execute(
            """INSERT INTO in_force
               SELECT DISTINCT f.path_text, i.name, i.value, i.set_s
               FROM in_force i JOIN files f ON f.dir = i.path_text AND i.path_text <> ''
               WHERE NOT EXISTS (FROM in_force o WHERE o.path_text = f.path_text
                                 AND o.name = i.name)"""
        )


def _set(bundle: Bundle, data_roots: Sequence[str]) -> Iterator[tuple[str, str, str, float]]:
    """What `tracehint run` set on files as they were made, and was there at the end."""
    import pyarrow.compute as pc

    from tracehint.hintgen.text.escape import text

    settings = bundle.tables["settings"]
    origin = bundle.manifest.started_ns
    held = settings.filter(pc.equal(settings.column("state"), "set"))
    for row in held.select(["path", "hint", "t_ns"]).to_pylist():
        for hint in row["hint"].split(" "):
            name, _, value = hint.partition("=")
            path = _relative(text(row["path"]), data_roots)
            yield path, name, value, (row["t_ns"] - origin) / 1e9


def _seen(bundle: Bundle, data_roots: Sequence[str]) -> Iterator[tuple[str, str, str, float]]:
    import pyarrow.compute as pc

    from tracehint.hintgen.text.escape import text

    processes = bundle.tables["processes"]
    # Recorded names only: a driver that calls setxattr itself is not seen here.
    exe = pc.fill_null(pc.ends_with(processes.column("exe"), b"setfattr"), False)
    origin = bundle.manifest.started_ns
    for row in processes.filter(exe).select(["argv", "cwd", "start_ns"]).to_pylist():
        name, value, files = parse_setfattr(row["argv"])
        if name:
            for file in files:
                path = text(os.path.normpath(os.path.join(row["cwd"] or b"/", file)))  # noqa: PTH118
                yield _relative(path, data_roots), name, value, (row["start_ns"] - origin) / 1e9


def _read(con: duckdb.DuckDBPyConnection, bundle: Bundle) -> Iterator[tuple[str, str, str, None]]:
    """Attributes of files that somebody stated or read; when they were set is not known."""
    import pyarrow.compute as pc

    rows = bundle.tables["attributes"]
    rows = rows.filter(pc.starts_with(rows.column("name"), "user."))
    if rows.num_rows:
        con.register("read_attributes", rows)
        found = con.execute(
            """SELECT f.path_text, split_part(a.name, '.', -1), a.value
               FROM read_attributes a JOIN files f USING (file)"""
        ).fetchall()
        con.unregister("read_attributes")
        yield from ((path, name, value, None) for path, name, value in found)


def _relative(path: str, data_roots: Sequence[str]) -> str:
    from tracehint.hintgen.text.escape import text

    for root in sorted(data_roots, key=len, reverse=True):
        prefix = text(root).rstrip("/") + "/"
        if path.startswith(prefix):
            return path[len(prefix) :]
    return path


def parse_setfattr(argv: list[bytes]) -> tuple[str, str, list[bytes]]:
    """Attribute (last component of its name), value and files of a setfattr command line.

    >>> parse_setfattr([b"setfattr", b"-n", b"user.DP", b"-v", b"local", b"a", b"b"])
    ('DP', 'local', [b'a', b'b'])
    >>> parse_setfattr([b"setfattr", b"-n", b"user.DP", b"-v", b"0x6c6f63616c", b"a"])[1]
    'local'
    """
    name = value = b""
    files: list[bytes] = []
    rest = iter(argv[1:])
    for word in rest:
        if word in (b"-n", b"--name"):
            name = next(rest, b"")
        elif word in (b"-v", b"--value"):
            value = next(rest, b"")
        elif word.startswith(b"--name="):
            name = word[7:]
        elif word.startswith(b"--value="):
            value = word[8:]
        elif word == b"--":
            files += rest
        elif not word.startswith(b"-"):
            files.append(word)
    short = name.rsplit(b".", 1)[-1].decode("utf-8", "replace")
    return short, _decoded(value).decode("utf-8", "replace"), files


def _decoded(value: bytes) -> bytes:
    """The value as setfattr takes it: text, `0x` hexadecimal, `0s` base64, or in quotes."""
    import base64
    import binascii

    try:
        if value[:2] in (b"0x", b"0X"):
            return binascii.unhexlify(value[2:])
        if value[:2] in (b"0s", b"0S"):
            return base64.b64decode(value[2:])
    except ValueError:
        return value
    return value[1:-1] if len(value) > 1 and value[:1] == value[-1:] == b'"' else value


def _stated(
    con: duckdb.DuckDBPyConnection, hints: HintFile
) -> Iterator[tuple[str, str, str, None]]:
    from tracehint.hintgen.match.match import match

    paths = con.execute("SELECT DISTINCT path, path_text FROM files WHERE data").fetchall()
    found = match(hints, [bytes(path) for path, _ in paths])
    for (_, shown), hit in zip(paths, found, strict=True):
        for name, value in hit.values.items():
            yield shown, name, value, None
