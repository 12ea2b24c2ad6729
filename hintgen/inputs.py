"""What lint, graph, report and diff take as input: a bundle, or an analysis as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import InputError

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis, Options
    from tracehint.schemas.store import Bundle


@dataclass
class Input:
    """A run: its analysis, and the bundle where there is one."""

    name: str
    analysis: Analysis
    bundle: Bundle | None = None


def load_run(path: str | Path, options: Options, bundle: Bundle | None = None) -> Input:
    """Read a bundle directory and analyze it, or read the JSON of `analyze --format json`.

    A caller that has changed the bundle (joined a declared graph) passes it.
    Raises BundleError or InputError.
    """
    where = Path(path)
    if bundle is None and where.is_file():
        return Input(str(path), _from_json(where))
    from tracehint.analyzer.analyze import analyze
    from tracehint.schemas.store import read_bundle

    bundle = bundle or read_bundle(where)
    return Input(str(path), analyze(bundle, options), bundle)


def _from_json(path: Path) -> Analysis:
    from tracehint.analyzer.output.json import from_json

    try:
        data = json.loads(path.read_bytes())
        if not isinstance(data, dict) or "tasks" not in data:
            raise ValueError("not the output of `tracehint analyze --format json`")
        return from_json(data)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read as an analysis: {error}",
            "Give a trace bundle, or the output of: tracehint analyze BUNDLE --format json",
        ) from None
