"""YAML of an engine, changed in places and written again: all that is not touched keeps its text.

Values are never turned into numbers, dates or truth values and back: what `yes`, `010` or `1e3`
means differs between the YAML of one engine and of another. Comments are lost. Input is bounded as
in yaml_text.py.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.yaml_text import check_yaml, not_yaml, yaml_module
from tracehint.errors import InputError

_TEXT = "tag:yaml.org,2002:str"
_MAP = "tag:yaml.org,2002:map"
_LIST = "tag:yaml.org,2002:seq"


def read_node(text: str, path: Path) -> Any:
    """The document as a tree of PyYAML's nodes; its top is a mapping.

    Raises InputError; MissingDependencyError without PyYAML.
    """
    yaml = yaml_module(path)
    try:
        check_yaml(text, path)
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise not_yaml(path, error) from None
    if not isinstance(node, yaml.MappingNode):
        raise InputError(f"{path}: no mapping at its top", "Check that it is the file you mean.")
    return node


def render(node: Any) -> bytes:
    """The document's text, UTF-8."""
    yaml = importlib.import_module("yaml")
    text = yaml.serialize(node, Dumper=yaml.BaseDumper, allow_unicode=True, width=1 << 30)
    return str(text).encode()


def get(node: Any, key: str) -> Any:
    """The node of a mapping's key; None: it has none, or is no mapping."""
    if getattr(node, "id", "") != "mapping":
        return None
    return next((value for name, value in node.value if name.value == key), None)


def text_of(node: Any) -> str:
    """A scalar's text; empty for anything else."""
    return str(node.value) if getattr(node, "id", "") == "scalar" else ""


def items(node: Any) -> list[Any]:
    """The nodes of a sequence; empty for anything else."""
    return list(node.value) if getattr(node, "id", "") == "sequence" else []


def put(node: Any, key: str, value: Any) -> Any:
    """Set a mapping's key to a plain value; the new node."""
    made = node_of(value)
    for at, (name, _) in enumerate(node.value):
        if name.value == key:
            node.value[at] = (name, made)
            return made
    node.value.append((node_of(key), made))
    return made


def child(node: Any, key: str) -> Any:
    """The mapping below a key, made where there is none."""
    found = get(node, key)
    return found if getattr(found, "id", "") == "mapping" else put(node, key, {})


def node_of(value: Any) -> Any:
    """Nodes for str, int, bool, list and dict; texts are quoted, so that they stay texts."""
    yaml = importlib.import_module("yaml")
    if isinstance(value, dict):
        rows = [(node_of(str(name)), node_of(part)) for name, part in value.items()]
        return yaml.MappingNode(_MAP, rows, flow_style=False)
    if isinstance(value, (list, tuple)):
        return yaml.SequenceNode(_LIST, [node_of(part) for part in value], flow_style=False)
    if isinstance(value, str):
        return yaml.ScalarNode(_TEXT, value, style='"')
    return yaml.ScalarNode(_TEXT, json.dumps(value))
