"""What lint, graph, report and diff take as input: a bundle, or an analysis as JSON."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import InputError
from tracehint.limits import check, values_of
from tracehint.schemas.kinds import instead, what_is

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis, Options
    from tracehint.schemas.store import Bundle


@dataclass
class Input:
    """A run: its analysis, and its bundle where there is one."""

    name: str
    analysis: Analysis
    bundle: Bundle | None = None


def load_run(
    path: str | Path, options: Options, bundle: Bundle | None = None, *, accesses: bool = False
) -> Input:
    """Read a bundle directory and analyze it, or read the JSON of `analyze --format json`.

    A caller that has changed the bundle (joined a declared graph) passes it. The bundle of the
    result has no table of accesses unless they are asked for: most of a bundle, and in the
    analysis as ranges.
    Raises BundleError or InputError, also where an analysis was made with other options.
    """
    where = Path(path)
    if bundle is None and where.is_file():
        _check_choice(where, options)
        analysis = _from_json(where)
        _check_same(where, analysis, options)
        return Input(str(path), analysis)
    from tracehint.analyzer.analyze import analyze
    from tracehint.schemas.store import read_bundle

    bundle = bundle or read_bundle(where)
    analysis = analyze(bundle, options)
    if not accesses:
        rest = {name: table for name, table in bundle.tables.items() if name != "extents"}
        bundle = dataclasses.replace(bundle, tables=rest)
    return Input(str(path), analysis, bundle)


def _check_choice(path: Path, options: Options) -> None:
    """Raises InputError where another segmentation is asked for than an analysis has."""
    asked = [name for name in ("split", "whole", "ranks") if getattr(options, name)]
    if asked:
        raise InputError(
            f"{path}: --{asked[0]} with an analysis, whose tasks are made already",
            "Give the trace bundle.",
        )


def _check_same(path: Path, analysis: Analysis, asked: Options) -> None:
    """The savings of an analysis are those of its options: others need the bundle."""
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
