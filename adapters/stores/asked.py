"""What a store makes of the hints of many targets: asked once for equal ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tracehint.adapters.plan import Target
from tracehint.adapters.stores.base import Gap, Setting, Translator

Said = tuple[list[Setting], list[Gap]]


def asked_once(store: Translator) -> Callable[[Target], Said]:
    """`store.translate` of a target; equal hints have the same lists, which are not to be changed.

    It remembers as many answers as there are different hints.
    """
    known: dict[tuple[object, ...], Said] = {}
    same: dict[tuple[str, int], tuple[Mapping[str, str], Said]] = {}  # the hints stay there as well

    def said(target: Target) -> Said:
        place = target.kind, id(target.hints)
        if place in same:  # most targets share their hints with others
            return same[place][1]
        key = (target.kind, *sorted(target.hints.items()))
        found = known.get(key)
        if found is None:
            found = known[key] = store.translate(target.hints, target.kind)
        same[place] = target.hints, found
        return found

    return said
