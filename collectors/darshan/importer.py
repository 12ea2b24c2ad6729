"""Make one bundle of many Darshan logs."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.collectors.darshan.assembly import Assembly
from tracehint.collectors.darshan.facts import LogFacts
from tracehint.collectors.darshan.pool import read_logs
from tracehint.errors import InputError, MissingDependencyError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.writer import BundleWriter
from tracehint.schemas.writing import write_bundle

if TYPE_CHECKING:
    import pyarrow as pa


_SHOWN = 16  # sources that the manifest names


def find_logs(sources: Sequence[Path]) -> list[Path]:
    """The .darshan files among and below the sources, sorted; symbolic links are not followed."""
    found: set[Path] = set()
    for source in sources:
        if source.is_dir():
            found.update(p for p in source.rglob("*.darshan") if not p.is_symlink() and p.is_file())
        elif source.exists():
            found.add(source)
        else:
            raise InputError(f"{source}: no such file or directory", "Check the path.")
    return sorted(found)


def import_darshan(sources: Sequence[Path], output: Path, *, force: bool = False) -> Manifest:
    """Read all logs and write the bundle.

    Logs that cannot be read are listed in the manifest's notes and counted as
    losses. Raises InputError when none can be read.
    """
    tables, manifest = gather(sources)
    manifest.command = ["tracehint", "import", *map(str, sources[:_SHOWN])]
    write_bundle(BundleWriter(output, force=force), tables, manifest)
    return manifest


def gather(sources: Sequence[Path]) -> tuple[dict[str, pa.Table], Manifest]:
    """Tables and manifest of all logs. Raises InputError when none can be read."""
    if importlib.util.find_spec("darshan") is None:  # the workers load it
        raise MissingDependencyError(
            "reading Darshan logs needs the package `darshan`",
            "Install it: pip install 'tracehint[darshan]'",
        )
    logs = find_logs(sources)
    if not logs:
        raise InputError("no .darshan files found", "Give log files or a directory of them.")
    facts, bad = [], []
    for path, outcome in read_logs([str(p) for p in logs]):
        if isinstance(outcome, LogFacts):
            facts.append(outcome)
        else:
            bad.append((path, outcome))
    if not facts:
        reasons = "; ".join(f"{path}: {why}" for path, why in sorted(bad)[:3])
        raise InputError(
            f"none of {len(logs)} Darshan logs can be read ({reasons})",
            "Copy the logs again from where Darshan wrote them.",
        )
    facts.sort(key=lambda f: (f.start_ns, f.jobid, f.pid or 0, f.path))
    assembly = Assembly(facts)
    return assembly.tables(sorted(bad)), assembly.manifest(sorted(bad))
