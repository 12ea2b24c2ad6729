"""Import-time dependencies; the import graph itself is checked by `make lint` (import-linter)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracehint.analyzer.catalogue import CATALOGUE, GROUPED, NAMES
from tracehint.analyzer.patterns.evidence import GROUPS, SHAPES
from tracehint.hintgen.hints.mapping import PATTERN_HINTS
from tracehint.hintgen.hints.uses import BY_DEFINITION
from tracehint.hintgen.summary.words import WORDS
from tracehint.schemas.tables import ENV_MARKERS

ROOT = Path(__file__).parent.parent
HEAVY = {"pyarrow", "duckdb", "networkx", "numpy", "rich", "jsonschema"}


def top_level_imports(path: Path) -> Iterator[str]:
    """Top-level package names imported when the file itself is imported."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", [ROOT / "src/tracehint/cli.py", ROOT / "src/tracehint/errors.py"])
def test_the_command_table_imports_nothing_heavy(path: Path) -> None:
    assert not HEAVY & set(top_level_imports(path))


def test_the_version_is_stated_once_in_two_places() -> None:
    from tracehint.version import __version__

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__


def test_the_names_of_the_tables_are_those_of_the_schemas() -> None:
    from tracehint.schemas.manifest import TABLE_NAMES
    from tracehint.schemas.tables import TABLES

    assert set(TABLE_NAMES) == set(TABLES)


def test_recording_loads_no_arrow_before_the_command_runs(tmp_path: Path) -> None:
    """Loading Arrow costs CPU time, and the command would inherit its settings."""
    code = (
        "import sys; from tracehint.collectors import begin, registry, run;"
        "from tracehint.commands import record; from tracehint.schemas.writer import BundleWriter;"
        "from pathlib import Path; BundleWriter(Path(sys.argv[1]), force=True);"
        "import tracehint.collectors.ebpf.collector;"
        "print('pyarrow' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_every_command_module_exists_and_has_help() -> None:
    from tracehint.cli import COMMANDS, cli

    for name in COMMANDS:
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert command.help, f"{name} has no help text"


# -- Definitions shared by the schemas and C code must agree


HEADER = Path(__file__).parents[1] / "collectors" / "markers.h"


def test_recorders_keep_the_variables_of_the_schema() -> None:
    assert tuple(re.findall(r'"(\w+)="', HEADER.read_text())) == ENV_MARKERS


# -- The catalogue of patterns and the tables with one entry per pattern


def test_every_pattern_has_its_numbers_and_words() -> None:
    for table in (SHAPES, WORDS):
        assert sorted(table) == sorted(set(NAMES)) == sorted(NAMES)
    assert sorted(GROUPS) == sorted(GROUPED)
    assert {p for p in BY_DEFINITION.values() if p} <= set(NAMES)


def test_what_a_pattern_asks_for_has_hints() -> None:
    assert set(PATTERN_HINTS) == {p.name for p in CATALOGUE if p.hint}
    assert all(0 < p.blind <= 1 and len(p.color) == 7 for p in CATALOGUE)
