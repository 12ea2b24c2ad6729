"""The stores by name. A store that needs only a table is a TOML file here, or the user's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tracehint.adapters.stores.base import Store
from tracehint.adapters.stores.cephfs import CephFs
from tracehint.adapters.stores.moosefs import MooseFs
from tracehint.adapters.stores.places import Places, load_places
from tracehint.adapters.stores.table import load_table
from tracehint.errors import UsageError

_HERE = Path(__file__).parent

# name -> table beside this file
TABLES: dict[str, str] = {"xattr": "xattr.toml", "woss": "woss.toml", "orangefs": "orangefs.toml"}


# name -> adapter with code of its own
ADAPTERS: dict[str, Callable[[Places], Store]] = {"cephfs": CephFs, "moosefs": MooseFs}


def names() -> list[str]:
    """Every store that --store takes by name."""
    return [*TABLES, *ADAPTERS]


def open_store(name: str, *, prefix: str | None = None, places: Path | None = None) -> Store:
    """The store of that name, or of that TOML file; raises UsageError for an unknown one.

    `places` is a --map file, for stores that put files on nodes by class or pool.
    """
    if name in ADAPTERS:
        if prefix is not None:
            raise UsageError(f"the store {name} has no prefix", "Leave --prefix away.")
        return ADAPTERS[name](load_places(places))
    if name in TABLES:
        return load_table(_HERE / TABLES[name], prefix=prefix)
    if name.endswith(".toml"):
        return load_table(Path(name), prefix=prefix)
    raise UsageError(
        f"there is no store {name[:80]!r}",
        f"Known are {', '.join(names())}; or give a table, for example --store ./mystore.toml.",
    )
