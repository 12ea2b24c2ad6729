"""What a store is to this project: whether it was run, who may set hints, how to take them back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from tracehint.errors import InputError

State = Literal["works", "translated", "nothing"]
NOT_RUN = "not run"


@dataclass(frozen=True, kw_only=True)
class About:
    """One row of the stores' table, in words for people."""

    state: State = "translated"
    tried: str = NOT_RUN  # version and month; NOT_RUN where this project never had the store
    who: str = ""
    read_back: str = ""
    undo: str = ""
    cost: str = ""
    source: str = ""  # where the grammar was taken from
    instead: str = ""  # what helps there where the store takes nothing
    tools: tuple[str, ...] = ()  # programs that are needed

    def warning(self, title: str) -> str:
        """What every output for such a store says first; "" for one that was run."""
        if self.tried != NOT_RUN or self.state == "nothing" or not self.source:
            return ""
        return f"{title}: {NOT_RUN} by this project, translated from {self.source}"


def read_about(raw: Mapping[str, Any], origin: str, remedy: str) -> About:
    """The [about] table of a store's TOML file; raises InputError."""
    known = {field.name for field in fields(About)}
    texts = {key: value for key, value in raw.items() if key != "tools"}
    tools = raw.get("tools", [])
    if set(raw) - known or not all(isinstance(value, str) for value in texts.values()):
        raise InputError(f"{origin}: [about] holds texts named {', '.join(sorted(known))}", remedy)
    if not isinstance(tools, list) or not all(isinstance(tool, str) for tool in tools):
        raise InputError(f"{origin}: about.tools is a list of programs", remedy)
    if raw.get("state", "translated") not in get_args(State):
        raise InputError(f"{origin}: about.state is works, translated or nothing", remedy)
    return About(**texts, tools=tuple(tools))
