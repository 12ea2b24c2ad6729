"""The size of functions and files: each can be read on a screen, and without another one open."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("adapters", "analyzer", "collectors", "datasets", "hintgen", "schemas", "src", "scripts")
FUNCTION, FILE = 40, 250  # lines
# files that may be longer -> why
LONGER: dict[str, str] = {}


def _files(*rooms: str) -> Iterator[Path]:
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            inside = path.relative_to(ROOT).parts
            if "build" not in inside and not any((ROOT / p).is_symlink() for p in _above(path)):
                yield path


def _above(path: Path) -> list[Path]:
    return [p for p in path.relative_to(ROOT).parents if p != Path()]


def test_the_rooms_are_looked_at() -> None:
    found = list(_files(*ROOMS))
    assert len(found) > 600 and len(found) == len(set(found))
    assert ROOT / "src/tracehint/cli.py" in found and ROOT / "analyzer/analyze.py" in found


def test_functions_fit_a_screen() -> None:
    long = []
    for path in _files(*ROOMS):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION:
                    long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {lines}")
    assert not long, f"over {FUNCTION} lines, divide them: " + ", ".join(long)


def test_files_are_read_in_one_go() -> None:
    lines = {str(p.relative_to(ROOT)): p.read_text().count("\n") for p in _files(*ROOMS)}
    long = {name: count for name, count in lines.items() if count > FILE and name not in LONGER}
    assert not long, f"over {FILE} lines, divide them: {long}"
    assert all(lines.get(name, 0) > FILE for name in LONGER), "no longer an exception"


def test_the_formatter_wins_but_for_tables() -> None:
    reason = re.compile(r"#\s*fmt:\s*(?:skip|off)")
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in _files(*ROOMS, "tests")
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if reason.search(line) and not line.endswith("# fmt: skip  # a table")
    ]
    bare = [place for place in bare if not place.startswith("tests/test_house.py")]
    assert not bare, "`# fmt: skip` only for tables, written `# fmt: skip  # a table`: " + str(bare)
