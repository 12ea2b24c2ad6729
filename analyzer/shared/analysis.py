"""The analysis of a bundle: the one that is kept, else a new one, which is kept then."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import UsageError
from tracehint.limits import limit

if TYPE_CHECKING:
    from tracehint.analyzer.execution.resources import Resources
    from tracehint.analyzer.flow.extents import Execution
    from tracehint.analyzer.model import Analysis, Options
    from tracehint.schemas.store import Bundle

VARIABLE = "TRACEHINT_CACHE"  # on, off


@dataclass(frozen=True)
class Shared:
    """An analysis; whether all of its bundle could be read; whether it was made before."""

    analysis: Analysis
    sound: bool
    kept: bool = False


def analysis_of(where: str, options: Options, resources: Resources | None = None) -> Shared:
    """The analysis of the bundle at a path or URL. Raises TracehintError: no bundle there."""
    from tracehint.analyzer.execution.bundle_files import Folder, files_at
    from tracehint.analyzer.shared import entry, place
    from tracehint.analyzer.shared.key import key_of

    files = files_at(where)
    key = key_of(files.root, options) if wanted() and isinstance(files, Folder) else None
    if key is not None and (data := place.get(key)) is not None:
        found = entry.read(data, key, options)
        if found is not None:
            return Shared(found, sound=True, kept=True)
    made = _made(where, options, resources)
    if key is not None and made.sound and key == key_of(Path(files.root), options):
        place.put(key, partial(entry.write, key=key, analysis=made.analysis), limit("cache-bytes"))
    return made


def wanted() -> bool:
    """Whether analyses are kept. Raises UsageError where TRACEHINT_CACHE is not understood."""
    said = os.environ.get(VARIABLE, "on")
    if said not in ("on", "off"):
        raise UsageError(f"{VARIABLE}: {said[:80]!r} is neither on nor off", f"{VARIABLE}=off")
    return said == "on"


def _made(where: str, options: Options, resources: Resources | None) -> Shared:
    from tracehint.analyzer.analyze import analyze
    from tracehint.analyzer.execution.local import run_at

    def work(bundle: Bundle, extents: Execution | None) -> Shared:
        sound = not bundle.problems
        return Shared(analyze(bundle, options, extents, resources, owned=True), sound)

    return run_at(where, work, None, resources)
