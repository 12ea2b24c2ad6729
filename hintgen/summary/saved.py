"""What all placement hints of a run together would save: one number, wherever it is printed.

The summary, the report and the total of lint take it from here; the parts are those of
`Labelled.mix`, by pattern, and of `Labelled.best`, by flow.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.hintgen.text.units import size

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.summary.labelled import Labelled


@dataclass(frozen=True)
class Saved:
    """Bytes against the default placement: those that need not cross the network, negative where
    copies cost more than they spare, and those on the busiest link that nobody waits for."""

    network: int = 0
    waiting: int = 0

    @property
    def text(self) -> str:
        """In words; empty: nothing.

        >>> Saved(3 << 20, 512).text, Saved(-2048, 4096).text, Saved().text
        ('3 MiB network, 512 B waiting', '2 KiB more copied, 4 KiB waiting', '')
        """
        parts = []
        if self.network > 0:
            parts.append(f"{size(self.network)} network")
        if self.network < 0:
            parts.append(f"{size(-self.network)} more copied")
        if self.waiting:
            parts.append(f"{size(self.waiting)} waiting")
        return ", ".join(parts)


def saved(labelled: Labelled, without: Collection[int] = ()) -> Saved:
    """The sum over all files but those of `without`, that have their hints already."""
    keep = ~np.isin(labelled.file, np.asarray(list(without), np.int64))
    return Saved(int(labelled.saves[keep].sum()), int(labelled.waits[keep].sum()))


def saved_by(analysis: Analysis) -> Saved:
    """The same of a run."""
    from tracehint.hintgen.summary.labelled import Labelled

    return saved(Labelled(analysis))
