"""The stores by name: the tables in `tables/`, the adapters below, or the user's own TOML file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tracehint.adapters.stores.base import Store
from tracehint.adapters.stores.cephfs import CephFs
from tracehint.adapters.stores.listed import hercules, juicefs, taskvine
from tracehint.adapters.stores.lustre import lustre
from tracehint.adapters.stores.moosefs import MooseFs
from tracehint.adapters.stores.places import Places, load_places
from tracehint.adapters.stores.scale import storage_scale
from tracehint.adapters.stores.seaweedfs import seaweedfs
from tracehint.adapters.stores.table_file import load_table
from tracehint.errors import UsageError

TABLES = Path(__file__).parent / "tables"  # a TOML file that is put there is a store

# name -> adapter with code of its own
ADAPTERS: dict[str, Callable[[Places], Store]] = {
    "cephfs": CephFs, "hercules": hercules, "juicefs": juicefs, "lustre": lustre,
    "moosefs": MooseFs, "seaweedfs": seaweedfs, "storage-scale": storage_scale,
    "taskvine": taskvine,
}  # fmt: skip  # a table


def names(tables: Path = TABLES) -> list[str]:
    """Every store that --store takes by name."""
    return sorted([*(path.stem for path in tables.glob("*.toml")), *ADAPTERS])


def open_store(
    name: str, *, prefix: str | None = None, places: Path | None = None, tables: Path = TABLES
) -> Store:
    """The store of that name, or of that TOML file; raises UsageError for an unknown one.

    `places` is a --map file: names of classes, pools and servers of the site.
    """
    if name in ADAPTERS:
        if prefix is not None:
            raise UsageError(f"the store {name} has no prefix", "Leave --prefix away.")
        return ADAPTERS[name](load_places(places))
    if name in names(tables):
        return load_table(tables / f"{name}.toml", prefix=prefix, places=load_places(places))
    if name.endswith(".toml"):
        return load_table(Path(name), prefix=prefix, places=load_places(places))
    raise UsageError(
        f"there is no store {name[:80]!r}",
        f"Known are {', '.join(names(tables))}; or give a table, for example --store ./my.toml.",
    )
