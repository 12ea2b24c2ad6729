"""What is loaded when: the way of imports itself is checked by `make lint` (import-linter)."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = {"pyarrow", "duckdb", "networkx", "numpy", "rich", "jsonschema"}


def top_level_imports(path: Path) -> Iterator[str]:
    """First parts of the names imported when the file itself is imported."""
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
    from tracehint.schemas.tables import TABLES
    from tracehint.schemas.version import TABLE_NAMES

    assert set(TABLE_NAMES) == set(TABLES)


def test_recording_loads_no_arrow_before_the_command_runs(tmp_path: Path) -> None:
    """What it would load costs CPU, and its settings would be seen by the command."""
    code = (
        "import sys; from tracehint.collectors import registry, session, run;"
        "from tracehint.commands import record; from tracehint.schemas.writer import BundleWriter;"
        "from pathlib import Path; BundleWriter(Path(sys.argv[1]), force=True);"
        "import tracehint.collectors.ebpf.record;"
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
