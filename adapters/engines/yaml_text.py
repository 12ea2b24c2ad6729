"""YAML from strangers: texts, lists and mappings, no aliases or anchors, bounded depth and size."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from tracehint.errors import InputError, MissingDependencyError
from tracehint.limits import exceeded, limit

MAX_DEPTH = 64


def load_yaml(text: str, path: Path) -> Any:
    """The document as str, list and dict: numbers and dates stay texts, tags mean nothing.

    path: for messages. Raises InputError; MissingDependencyError without PyYAML.
    """
    yaml = yaml_module(path)
    clean = text.encode("utf-8", "replace").decode()
    try:
        check_yaml(clean, path)
        return yaml.load(clean, Loader=_loader(yaml))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise not_yaml(path, error) from None


def yaml_module(path: Path) -> Any:
    """PyYAML, to read `path`. Raises MissingDependencyError."""
    try:
        return importlib.import_module("yaml")
    except ImportError:
        raise MissingDependencyError(
            f"{path}: PyYAML is needed to read it", "Install it: pip install 'tracehint[pegasus]'"
        ) from None


def not_yaml(path: Path, error: Exception) -> InputError:
    """What is said of a file that PyYAML does not take."""
    return InputError(f"{path}: not YAML: {str(error)[:200]}", "Check the file.")


def _loader(yaml: Any) -> Any:
    return getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # in C where PyYAML was built so


def check_yaml(text: str, path: Path) -> None:
    """Look at the events alone first: building the document would already be the damage.

    Raises InputError, and PyYAML's own errors.
    """
    yaml = yaml_module(path)
    events, loader = yaml.events, _loader(yaml)
    begins, ends = events.CollectionStartEvent, events.CollectionEndEvent
    depth, most = 0, limit("yaml-values")
    for count, event in enumerate(yaml.parse(text, Loader=loader)):
        if isinstance(event, begins):
            depth += 1
        elif isinstance(event, ends):
            depth -= 1
        if getattr(event, "anchor", None) is not None:  # of an alias, or of what one may name
            raise InputError(
                f"{path}: YAML aliases and anchors are not read", "Write it without them."
            )
        if depth > MAX_DEPTH:
            raise InputError(
                f"{path}: nested deeper than {MAX_DEPTH}",
                "Check that it is the file that you mean.",
            )
        if count > most:
            raise exceeded("yaml-values", str(path))
