"""Input of lint, graph, report and diff: a bundle, or an analysis as JSON or Parquet."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.analyzer.memory import give_back
from tracehint.analyzer.output.tables import from_tables, is_tables
from tracehint.errors import InputError
from tracehint.limits import check, values_of
from tracehint.schemas.kinds import instead, what_is

if TYPE_CHECKING:
    from tracehint.analyzer.dataflow.partitions import Execution
    from tracehint.analyzer.execution.resources import Resources, Tell
    from tracehint.analyzer.model import Analysis, Options
    from tracehint.schemas.store import Bundle


# Unused columns; without them the remaining columns of the table have small types.
_UNUSED_COLUMNS = {"declared_io": ("host",)}


@dataclass
class Input:
    """A run: its analysis, and its bundle if there is one (`given`, or read lazily by
    `read`)."""

    name: str
    analysis: Analysis
    given: Bundle | None = None
    read: Callable[[], Bundle] | None = None

    @cached_property
    def bundle(self) -> Bundle | None:
        """The bundle, if any. Raises BundleError if it was removed in the meantime."""
        return self.read() if self.read is not None else self.given


def load_run(
    path: str | Path,
    options: Options,
    bundle: Bundle | None = None,
    *,
    accesses: bool = False,
    tell: Tell | None = None,
) -> Input:
    """Analyze a bundle directory, or load an analysis written by `analyze` (JSON, Parquet).

    A caller that has changed the bundle (joined a declared graph) passes it. The bundle of the
    result has the table of accesses only with `accesses`: it is most of a bundle, and the analysis
    contains it as ranges.
    Raises BundleError or InputError, also for an analysis made with other options.
    """
    where, resources = Path(path), _resources(tell)
    if bundle is None and (where.is_file() or is_tables(where)):
        _check_choice(where, options)
        analysis = _from_json(where) if where.is_file() else from_tables(where)
        _check_same(where, analysis, options)
        return Input(str(path), analysis)
    if bundle is None and not _needs_recovery(where):
        from tracehint.analyzer.cache import analysis_of

        found = analysis_of(str(where), options, resources)
        give_back()
        read = partial(_bundle, where, whole=not found.sound, accesses=accesses)
        return Input(str(path), found.analysis, read=read)
    from tracehint.analyzer.analyze import analyze
    from tracehint.schemas.store import read_bundle

    bundle = bundle or read_bundle(where)
    analysis = analyze(bundle, options, None, resources)
    return Input(str(path), analysis, bundle if accesses else _drop_extents(bundle))


def _resources(tell: Tell | None) -> Resources:
    """Return the default resources of an analysis. `tell`: callback for progress."""
    from tracehint.analyzer.execution.resources import Resources, cores, half_of_memory, silent

    return Resources(cores(), half_of_memory(), tell=tell or silent)


def load_at(where: str, options: Options, backend: str, master: str | None = None) -> Input:
    """Analyze the run at a path or URL with a backend (analyzer/analyze.py), without caching.

    The bundle of the result has no table of accesses; for a URL there is no bundle. Raises
    TracehintError.
    """
    from importlib import import_module

    from tracehint.analyzer.analyze import BACKENDS, analyze

    def work(bundle: Bundle, extents: Execution | None) -> Input:
        damaged = bool(bundle.problems)
        read = partial(_bundle, Path(where), whole=damaged, accesses=False)
        analysis = analyze(bundle, options, extents, owned=True)
        return Input(where, analysis, read=None if "://" in where else read)

    run: Input = import_module(BACKENDS[backend]).run_at(where, work, master)
    return run


def _needs_recovery(path: Path) -> bool:
    """Whether a killed recorder left a log, which is read only once."""
    from tracehint.schemas.manifest import read_manifest
    from tracehint.schemas.recovery import is_unfinished

    return is_unfinished(path, read_manifest(path))


def _bundle(path: Path, *, whole: bool, accesses: bool) -> Bundle:
    """Read the bundle; `whole`: including accesses, since damage must be reported."""
    from tracehint.schemas.store import read_bundle

    if accesses:
        return read_bundle(path)
    return _drop_extents(read_bundle(path, _UNUSED_COLUMNS, without=() if whole else ("extents",)))


def _drop_extents(bundle: Bundle) -> Bundle:
    rest = {name: table for name, table in bundle.tables.items() if name != "extents"}
    return dataclasses.replace(bundle, tables=rest)


def _check_choice(path: Path, options: Options) -> None:
    """Raise InputError for segmentation options, which a finished analysis cannot apply."""
    asked = [name for name in ("split", "whole", "ranks") if getattr(options, name)]
    if asked:
        raise InputError(
            f"{path}: --{asked[0]} cannot be applied to a finished analysis",
            "Give the trace bundle.",
        )


def _check_same(path: Path, analysis: Analysis, asked: Options) -> None:
    """Raise InputError if options that determine the savings differ from the analysis."""
    from tracehint.analyzer.model import Options

    made = {
        "nodes": analysis.run.get("nodes"),
        "default_placement": analysis.options.default_placement,
    }
    for name, value in made.items():
        wanted = getattr(asked, name)
        if wanted not in (value, getattr(Options, name)):
            flag = f"--{name.replace('_', '-')} {wanted}"
            raise InputError(
                f"{path}: analyzed for {name.replace('_', ' ')} {value}, not {wanted}",
                f"Give the trace bundle, or analyze it again with {flag}.",
            )


def _from_json(path: Path) -> Analysis:
    from tracehint.analyzer.output.json import from_json

    try:
        raw = path.read_bytes()
        check("analysis-values", str(path), values_of(raw))
        data = json.loads(raw)
        if not isinstance(data, dict) or "tasks" not in data:
            raise ValueError("not the output of `tracehint analyze --format json`")
        return from_json(data)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        if what_is(path) != "analysis":
            raise InputError(*instead("bundle", path)) from None
        raise InputError(
            f"{path}: cannot be read as an analysis: {error}",
            "Give a trace bundle, or the output of: tracehint analyze BUNDLE --format json",
        ) from None
