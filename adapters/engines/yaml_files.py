"""An engine's YAML, changed in place and written again: unchanged values keep their text.

Values are never converted to numbers, dates or booleans and back: the meaning of `yes`, `010` or
`1e3` differs between the YAML of different engines. Comments are lost. Input is bounded
(check_yaml).
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from tracehint.errors import InputError, MissingDependencyError
from tracehint.limits import limit, limit_error

_TEXT = "tag:yaml.org,2002:str"
_MAP = "tag:yaml.org,2002:map"
_LIST = "tag:yaml.org,2002:seq"


def read_node(text: str, path: Path) -> Any:
    """Read the document as a tree of PyYAML nodes with a mapping at its top.

    Raises InputError; MissingDependencyError without PyYAML.
    """
    yaml = yaml_module(path)
    try:
        check_yaml(text, path)
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise not_yaml(path, error) from None
    if not isinstance(node, yaml.MappingNode):
        raise InputError(
            f"{path}: no mapping at the top level", "Check that it is the file you mean."
        )
    return node


def render(node: Any) -> bytes:
    """Return the document's text in UTF-8."""
    yaml = importlib.import_module("yaml")
    text = yaml.serialize(node, Dumper=yaml.BaseDumper, allow_unicode=True, width=1 << 30)
    return str(text).encode()


def get(node: Any, key: str) -> Any:
    """Return the node of a mapping's key; None if it is missing or `node` is not a mapping."""
    if getattr(node, "id", "") != "mapping":
        return None
    return next((value for name, value in node.value if name.value == key), None)


def text_of(node: Any) -> str:
    """Return a scalar's text; empty for anything else."""
    return str(node.value) if getattr(node, "id", "") == "scalar" else ""


def items(node: Any) -> list[Any]:
    """Return the nodes of a sequence; empty for anything else."""
    return list(node.value) if getattr(node, "id", "") == "sequence" else []


def set_key(node: Any, key: str, value: Any) -> Any:
    """Set a mapping's key to a plain value; return the new node."""
    made = node_of(value)
    for at, (name, _) in enumerate(node.value):
        if name.value == key:
            node.value[at] = (name, made)
            return made
    node.value.append((node_of(key), made))
    return made


def child(node: Any, key: str) -> Any:
    """Return the mapping below a key, created if it is missing."""
    found = get(node, key)
    return found if getattr(found, "id", "") == "mapping" else set_key(node, key, {})


def node_of(value: Any) -> Any:
    """Return nodes for str, int, bool, list and dict; texts are quoted, so they stay texts."""
    yaml = importlib.import_module("yaml")
    if isinstance(value, dict):
        rows = [(node_of(str(name)), node_of(part)) for name, part in value.items()]
        return yaml.MappingNode(_MAP, rows, flow_style=False)
    if isinstance(value, (list, tuple)):
        return yaml.SequenceNode(_LIST, [node_of(part) for part in value], flow_style=False)
    if isinstance(value, str):
        return yaml.ScalarNode(_TEXT, value, style='"')
    return yaml.ScalarNode(_TEXT, json.dumps(value))


# Untrusted YAML: texts, lists and mappings, no aliases or anchors, bounded depth and size.


MAX_DEPTH = 64


def load_yaml(text: str, path: Path) -> Any:
    """Load the document as str, list and dict: numbers and dates stay texts, tags are ignored.

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
    """Import PyYAML, to read `path`. Raises MissingDependencyError."""
    try:
        return importlib.import_module("yaml")
    except ImportError:
        raise MissingDependencyError(
            f"{path}: PyYAML is needed to read it", "Install it: pip install 'tracehint[pegasus]'"
        ) from None


def not_yaml(path: Path, error: Exception) -> InputError:
    """Return the error for a file that PyYAML rejects."""
    return InputError(f"{path}: not YAML: {str(error)[:200]}", "Check the file.")


def _loader(yaml: Any) -> Any:
    return getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # in C if PyYAML was built with it


def check_yaml(text: str, path: Path) -> None:
    """Check the events first, because building the document could already exhaust memory.

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
        if getattr(event, "anchor", None) is not None:  # of an alias or its target
            raise InputError(
                f"{path}: YAML aliases and anchors are not read", "Write it without them."
            )
        if depth > MAX_DEPTH:
            raise InputError(
                f"{path}: nested deeper than {MAX_DEPTH}",
                "Check that it is the file that you mean.",
            )
        if count > most:
            raise limit_error("yaml-values", str(path))
