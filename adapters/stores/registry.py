"""The stores by name. A store that needs only a table is a TOML file here, or the user's own."""

from __future__ import annotations

from pathlib import Path

from tracehint.adapters.stores.base import Store
from tracehint.adapters.stores.table import load_table
from tracehint.errors import UsageError

_HERE = Path(__file__).parent

# name -> table beside this file
TABLES: dict[str, str] = {
    "xattr": "xattr.toml",
    "woss": "woss.toml",
    "orangefs": "orangefs.toml",
}


def names() -> list[str]:
    """Every store that --store takes by name."""
    return list(TABLES)


def open_store(name: str, *, prefix: str | None = None) -> Store:
    """The store of that name, or of that TOML file; raises UsageError for an unknown one."""
    if name in TABLES:
        return load_table(_HERE / TABLES[name], prefix=prefix)
    if name.endswith(".toml"):
        return load_table(Path(name), prefix=prefix)
    raise UsageError(
        f"there is no store {name[:80]!r}",
        f"Known are {', '.join(names())}; or give a table, for example --store ./mystore.toml.",
    )
