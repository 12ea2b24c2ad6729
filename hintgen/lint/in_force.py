"""The hints that were in force during the run: seen in the trace, or stated by the user."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from tracehint.hintgen.lint.context import Context


def add_in_force(con: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Fill `in_force`: hints set during the run (seen as setfattr) or stated by the user."""
    rows = [*_seen(context), *_stated(con, context)]
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


def _seen(context: Context) -> Iterator[tuple[str, str, str, float]]:
    import pyarrow.compute as pc

    from tracehint.hintgen.text.escape import text

    if context.bundle is None:
        return
    processes = context.bundle.tables["processes"]
    # Recorded names only: a driver that calls setxattr itself is not seen here.
    exe = pc.fill_null(pc.ends_with(processes.column("exe"), b"setfattr"), False)
    origin = context.bundle.manifest.started_ns
    for row in processes.filter(exe).select(["argv", "cwd", "start_ns"]).to_pylist():
        name, value, files = parse_setfattr(row["argv"])
        if name:
            for file in files:
                path = text(os.path.normpath(os.path.join(row["cwd"] or b"/", file)))  # noqa: PTH118
                yield _relative(path, context), name, value, (row["start_ns"] - origin) / 1e9


def _relative(path: str, context: Context) -> str:
    from tracehint.hintgen.text.escape import text

    for root in sorted(context.analysis.run["data_roots"], key=len, reverse=True):
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
    con: duckdb.DuckDBPyConnection, context: Context
) -> Iterator[tuple[str, str, str, None]]:
    if context.hints_in_force is None:
        return
    from tracehint.hintgen.match.match import match

    paths = con.execute("SELECT DISTINCT path, path_text FROM files WHERE data").fetchall()
    found = match(context.hints_in_force, [bytes(path) for path, _ in paths])
    for (_, shown), hit in zip(paths, found, strict=True):
        for name, value in hit.values.items():
            yield shown, name, value, None
