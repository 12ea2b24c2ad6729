"""What stores share that put files on nodes by a class or pool of the --map file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from tracehint.adapters.stores.base import Setting
from tracehint.adapters.stores.places import Places

NO_DEFAULT = "every task has its own node: its files say it, no directory can"


@dataclass(frozen=True)
class Placing:
    """`places` names the classes or pools."""

    places: Places
    late: bool = False  # leave the host to the script that runs there

    def scripted(self) -> Self:
        """For a script that may run on any node."""
        return replace(self, late=True)

    def fits(self, setting: Setting, got: bytes | None) -> bool:
        """Whether what the store reports is what was asked for; any node's own place is local."""
        local = setting.hint == "DP=local" and got is not None and self.places.is_local(got)
        return local or got == setting.value
