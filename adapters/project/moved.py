"""Where a workflow's data lies after its directory was renamed, moved or copied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def roots_now(roots: Sequence[str], was: Path, here: Path) -> tuple[str, ...]:
    """The data roots of a run that was started in `was`, for one that starts in `here`.

    Those below `was` go along. Others do where they are gone and a directory above both was
    renamed.
    """
    if was == here:
        return tuple(roots)
    old, new = list(was.parts), list(here.parts)
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    moves = [(was, here), *([(Path(*old), Path(*new))] if len(old) > 1 and new else [])]
    return tuple(str(_moved(Path(root), moves)) for root in roots)


def _moved(root: Path, moves: Sequence[tuple[Path, Path]]) -> Path:
    for old, new in moves:
        there = new / root.relative_to(old) if root.is_relative_to(old) else root
        if there != root and (root.is_relative_to(moves[0][0]) or not root.is_dir()):
            return there
    return root
