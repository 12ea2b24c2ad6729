"""Write a copy of a bundle in which names, paths, hosts and arguments are other words."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.hintgen.anonymize.columns import replaced
from tracehint.hintgen.anonymize.words import Pseudonyms
from tracehint.schemas.writer import BundleWriter, whole_bundle

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.manifest import Manifest
    from tracehint.schemas.store import Bundle

# Columns of text that are facts of the recorder, not of the owner.
KEPT = {
    ("files", "fstype"), ("files", "kind"), ("names", "op"), ("opens", "via"), ("extents", "op"),
    ("extents", "how"), ("metadata_ops", "op"), ("marks", "kind"), ("marks", "source"),
    ("losses", "kind"), ("declared_tasks", "engine"), ("declared_io", "direction"),
    ("settings", "rule"), ("settings", "pattern"), ("settings", "hint"), ("settings", "key"),
    ("settings", "value"), ("settings", "state"),
    ("settings", "why"),
}  # fmt: skip  # a table
DROPPED = {("losses", "detail")}


def anonymize(bundle: Bundle, target: Path, key: bytes, *, force: bool = False) -> None:
    """Write the anonymised bundle. The same key gives the same words for another bundle.

    User ids become 0 or 1000, free texts (notes, details) are dropped, times,
    sizes, process and inode numbers stay. Raises BundleError.
    """
    words = Pseudonyms(key)
    hosts = {h.name: f"node{n}" for n, h in enumerate(bundle.manifest.hosts, 1)}
    for table in bundle.tables.values():
        for name in table.column("host").unique().to_pylist():
            hosts.setdefault(name, f"node{len(hosts) + 1}")
    with whole_bundle(target, force=force) as made:
        writer = BundleWriter(made)
        for name, table in bundle.tables.items():
            if table.num_rows:
                writer.write_table(name, _table(name, table, words, hosts))
        writer.write_manifest(_manifest(bundle.manifest, words, hosts))


def _table(name: str, table: pa.Table, words: Pseudonyms, hosts: dict[str, str]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    for index, field in enumerate(table.schema):
        column = table.column(index).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        if field.name == "host":
            new = _mapped(column, partial(_hosts, hosts=hosts))
        elif field.name == "uid":
            new = pc.if_else(pc.equal(column, 0), 0, 1000).cast(field.type)
        elif (name, field.name) in DROPPED:
            new = pa.nulls(len(column), field.type)
        elif (name, field.name) in KEPT:
            continue
        else:
            new = _words(column, field.name, words)
        table = table.set_column(index, field, new)
    return table


def _words(column: pa.Array, name: str, words: Pseudonyms) -> pa.Array:
    """The column with words replaced, through lists and structures."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        return _mapped(column, partial(replaced, words=words))
    if pa.types.is_list(kind):
        flat = _words(column.flatten(), name, words)
        offsets = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).cumsum()
        starts = pa.array([0, *offsets.tolist()], pa.int32())
        return pa.ListArray.from_arrays(starts, flat, mask=column.is_null()).cast(kind)
    if pa.types.is_struct(kind):
        # env: the names of the markers stay, they are the recorder's own list
        fields = [
            column.field(i) if kind[i].name == "name" else _words(column.field(i), name, words)
            for i in range(kind.num_fields)
        ]
        return pa.StructArray.from_arrays(fields, fields=list(kind))
    return column


def _mapped(column: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Each distinct value is changed once; `change` gets and gives them as binary ones."""
    import pyarrow as pa

    coded = column.dictionary_encode()
    new = change(coded.dictionary.cast(pa.binary())).cast(column.type)
    return new.take(coded.indices)


def _hosts(names: pa.Array, hosts: dict[str, str]) -> pa.Array:
    import pyarrow as pa

    return pa.array([hosts[name.decode()].encode() for name in names.to_pylist()], pa.binary())


def _manifest(manifest: Manifest, words: Pseudonyms, hosts: dict[str, str]) -> Manifest:
    def text(value: str) -> str:
        return os.fsdecode(words.replace(os.fsencode(value)))

    new_hosts = [
        dataclasses.replace(
            host,
            name=hosts[host.name],
            site=text(host.site),
            boot_id="",
            mounts=[
                {k: _mount_value(k, v, text) for k, v in mount.items()} for mount in host.mounts
            ],
        )
        for host in manifest.hosts
    ]
    return dataclasses.replace(
        manifest,
        hosts=new_hosts,
        command=[text(a) for a in manifest.command],
        cwd=text(manifest.cwd),
        data_roots=[text(r) for r in manifest.data_roots],
        notes=["anonymized"],
    )


def _mount_value(name: str, value: Any, text: Callable[[str], str]) -> Any:
    return text(value) if isinstance(value, str) and name != "fstype" else value
