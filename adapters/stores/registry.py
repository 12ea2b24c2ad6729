"""Stores by name: tables in `tables/`, adapters with code, or a user's TOML file.

A table holds attributes or the words of commands; every key is checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tracehint.adapters.stores.base import VOCABULARY, About, Acts, Capability, Level, Store
from tracehint.adapters.stores.cephfs import CephFs
from tracehint.adapters.stores.commands import AskPlace, CommandStore, ObjectCommand
from tracehint.adapters.stores.document_stores import hercules, juicefs, taskvine
from tracehint.adapters.stores.grammar import PLAIN, Field, unknown_field
from tracehint.adapters.stores.lustre import lustre
from tracehint.adapters.stores.moosefs import MooseFs
from tracehint.adapters.stores.places import Places, load_places
from tracehint.adapters.stores.scale import storage_scale
from tracehint.adapters.stores.seaweedfs import seaweedfs
from tracehint.adapters.stores.table import KINDS, Row, TableStore, check_attribute
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.text.textfile import TextFile
from tracehint.schemas.commandline.programs import INTERPRETERS, MULTI_CALL, SHELLS, WRAPPERS
from tracehint.schemas.plain import ConfiguredPath, named_path

_REMEDY = "The format of store tables is in docs/reference/stores.md."
_FILE = TextFile(kind="A store table", limit="small-bytes", check="Check --store.", remedy=_REMEDY)


class Pair(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attribute or a word (default: the hint's name), and the template of its value."""

    attribute: str = ""
    value: str = "{value}"


class HintRow(Pair, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of [hints]: one pair, or several in `set`."""

    set: tuple[Pair, ...] = ()
    level: Level = "full"
    how: str = ""
    acts: tuple[Acts, ...] = ()
    needs: tuple[str, ...] = ()
    yields_to: str = ""
    targets: tuple[Literal["file", "directory"], ...] = KINDS


class StoreTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A store's TOML file (docs/reference/stores.md)."""

    name: Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9-]{0,40}\Z")]
    hints: dict[str, HintRow]
    title: str = ""
    prefix: str = ""
    location: str = ""
    note: str = ""
    targets: tuple[Literal["file", "directory"], ...] = KINDS
    about: About = About()
    fields: dict[str, Field] = {}
    commands: dict[str, ObjectCommand] | None = None
    mounted: bool = True
    locate: AskPlace | None = None


# Programs that start other programs or interpret text as a program.
_STARTERS = {
    *SHELLS, *INTERPRETERS, *MULTI_CALL, *WRAPPERS, "chroot", "csh", "doas", "ed", "expect",
    "find", "fish", "gdb", "git", "make", "nsenter", "parallel", "pwsh", "runuser", "sed",
    "setpriv", "srun", "ssh", "strace", "su", "sudo", "tar", "tcsh", "unshare", "vi", "vim",
    "watch", "xargs",
}  # fmt: skip  # a table


def load_table(
    path: Path, *, prefix: str | None = None, places: Places | None = None
) -> TableStore | CommandStore:
    """Read a table; raises InputError naming the problem.

    A table that a configuration file names must not start a shell or an interpreter.
    """
    store = _build_store(_FILE.record(path, StoreTable), str(path), prefix, places or Places())
    if isinstance(path, ConfiguredPath) and isinstance(store, CommandStore):
        calls = [c for one in store.commands.values() for c in (one.set, one.get, one.unset)]
        calls += [store.ask_place.call] if store.ask_place else []
        for program in (call[0] for call in calls if call):
            if program.rstrip("-.0123456789") in _STARTERS:
                raise InputError(
                    f"{path}: {program} starts other programs; a table of tracehint.toml may not",
                    "Call the store's own tool, or type --store FILE.",
                )
    return store


def _build_store(
    data: StoreTable, origin: str, prefix: str | None, places: Places
) -> TableStore | CommandStore:
    if wrong := {*data.fields} & {*PLAIN}:
        raise InputError(f"{origin}: fields.{min(wrong)} is a field of every hint", _REMEDY)
    rows = {key: _row(f"{origin}: hints.{key}", key, raw, data) for key, raw in data.hints.items()}
    common: dict[str, Any] = {
        "name": data.name,
        "title": data.title or data.name,
        "rows": rows,
        "fields": data.fields,
        "note": data.note,
        "targets": data.targets,
        "places": places,
        "about": data.about,
    }
    attributes = [attribute for row in rows.values() for attribute, _ in row.attributes]
    if data.commands is not None:
        if prefix is not None:
            raise UsageError(f"the store {data.name} has no prefix", "Omit --prefix.")
        words = [word for command in data.commands.values() for word in command.words]
        if len(words) != len(set(words)) or set(attributes) - set(words):
            wrong = {*attributes} - {*words} or {"one word in two commands"}
            raise InputError(f"{origin}: no command has the word {min(wrong)!r}", _REMEDY)
        return CommandStore(
            **common, commands=data.commands, mounted=data.mounted, ask_place=data.locate
        )
    chosen = data.prefix if prefix is None else prefix
    for attribute in attributes:
        check_attribute(chosen + attribute, allow_trusted=True)
    return TableStore(**common, prefix=chosen, location=data.location)


def _row(where: str, key: str, raw: HintRow, table: StoreTable) -> Row:
    if key not in VOCABULARY:
        raise InputError(f"{where} is not a known hint", "Known hints: " + ", ".join(VOCABULARY))
    pairs = raw.set or ([raw] if raw.level != "none" else [])
    if any(unknown_field(pair.value, table.fields) for pair in pairs):
        raise InputError(
            f"{where}: a value may hold {{value}}, {{arg}}, {{block}}, {{region}}", _REMEDY
        )
    return Row(
        capability=Capability(level=raw.level, how=raw.how, acts=raw.acts),
        attributes=tuple((pair.attribute or key, pair.value) for pair in pairs),
        needs=raw.needs,
        yields_to=raw.yields_to,
        targets=raw.targets,
    )


TABLES = Path(__file__).parent / "tables"  # each TOML file in it is a store

# name -> adapter with code of its own
ADAPTERS: dict[str, Callable[[Places], Store]] = {
    "cephfs": CephFs,
    "hercules": hercules,
    "juicefs": juicefs,
    "lustre": lustre,
    "moosefs": MooseFs,
    "seaweedfs": seaweedfs,
    "storage-scale": storage_scale,
    "taskvine": taskvine,
}


def names(tables: Path = TABLES) -> list[str]:
    """Return the names of all built-in stores, for --store."""
    return sorted([*(path.stem for path in tables.glob("*.toml")), *ADAPTERS])


def open_store(
    name: str, *, prefix: str | None = None, places: Path | None = None, tables: Path = TABLES
) -> Store:
    """Return the store of that name, or of that TOML file; raises UsageError if unknown.

    `places` is a --map file: names of classes, pools and servers of the site.
    """
    if name in ADAPTERS:
        if prefix is not None:
            raise UsageError(f"the store {name} has no prefix", "Omit --prefix.")
        return ADAPTERS[name](load_places(places))
    if name in names(tables):
        return load_table(tables / f"{name}.toml", prefix=prefix, places=load_places(places))
    if name.endswith(".toml"):
        return load_table(named_path(name), prefix=prefix, places=load_places(places))
    raise UsageError(
        f"there is no store {name[:80]!r}",
        f"Known stores: {', '.join(names(tables))}; or a table, for example --store ./my.toml.",
    )
