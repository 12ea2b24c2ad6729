"""Values of a store's table: templates over a closed list of fields, never evaluated.

`{value}`, `{arg}` (after `|`), `{block}` (BlockSize), `{region}` (arg times BlockSize); the site's
places `{local}`, `{group}`, `{copies}`, `{server}`, `{site}`; and what the table's own [fields]
say: a number of bytes or a count on the grid that the store takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tracehint.adapters.stores.grammar import Grid, number_of
from tracehint.adapters.stores.places import Places

PLAIN = ("value", "arg", "block", "region")
PLACED = ("local", "group", "copies", "server", "site")
_FIELD = re.compile(r"\{([a-z][a-z0-9_]{0,30})\}")
_NO_PLACE = {
    "local": "name the place of each node in a --map file (local)",
    "group": "name the places of groups in a --map file (groups)",
    "copies": "name the places by number of copies in a --map file (copies, reads_spread)",
    "server": "name the server in a --map file (server)",
    "site": "name the metadata server of each site in a --map file (sites)",
}


class MissingError(Exception):
    """A field has no value; the text says why, for people."""


@dataclass(frozen=True)
class Field:
    """A value of the table's own: which plain field it is made of, and its grid or its words."""

    of: str
    grid: Grid
    map: Mapping[str, str] = field(default_factory=dict)  # the store's word for each value


@dataclass(frozen=True)
class HintFields:
    """What one hint's templates may use."""

    value: str
    hints: Mapping[str, str]
    places: Places
    late: bool = False

    def text(self, name: str, fields: Mapping[str, Field]) -> str:
        """The value of one field; raises MissingError."""
        if name in fields:
            number = self.text(fields[name].of, {})
            if fields[name].map:
                if number not in fields[name].map:
                    raise MissingError(f"the store has no word for {number[:40]}")
                return fields[name].map[number]
            plain = number_of(number)
            if plain is None:
                raise MissingError(f"its {fields[name].of} is no number")
            return str(fields[name].grid.fit(plain))
        found = self._plain(name) if name in PLAIN else self._place(name)
        if found is None:
            raise MissingError(_NO_PLACE[name])
        return found

    def _plain(self, name: str) -> str:
        arg, block = self.value.partition("|")[2], self.hints.get("BlockSize", "")
        if name == "region":
            parts, bytes_ = number_of(arg), number_of(block)
            return "" if parts is None or bytes_ is None else str(parts * bytes_)
        return {"value": self.value, "arg": arg, "block": block}[name]

    def _place(self, name: str) -> str | None:
        if name == "local":
            return self.places.of_host(late=self.late)
        if name == "group":
            return self.places.of_group(self.value.partition("|")[2])
        if name == "copies":
            copies = number_of(self.value)
            return None if copies is None else self.places.of_copies(copies)
        if name == "site":
            return self.places.of_site(self.value)
        return self.places.server or None


def fill(template: str, known: HintFields, fields: Mapping[str, Field]) -> str:
    """The template with its fields' values; raises MissingError."""
    return _FIELD.sub(lambda found: known.text(found[1], fields), template)


def unknown_field(template: str, fields: Mapping[str, Field]) -> bool:
    """Whether the template holds a brace that is no field."""
    names = {*PLAIN, *PLACED, *fields}
    rest = _FIELD.sub(lambda found: "" if found[1] in names else "{", template)
    return "{" in rest or "}" in rest
