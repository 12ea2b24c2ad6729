"""House rules that `make lint` checks in addition to the linters: size of functions and files,
verbs in names of the product's functions, and class names with one meaning.

Prints each breach and exits with 1 if there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("adapters", "analyzer", "collectors", "datasets", "hintgen", "schemas", "scripts")
FUNCTION, FILE = 60, 500  # lines
TABLE = "  # a table"
_PARTICIPLE = re.compile(r"_?[a-z]*[^e]ed")
_NOUNS = ("property", "contextmanager")  # decorators of functions that are used like nouns
_FORMATTED = re.compile(r"#\s*fmt:\s*(?:skip|off)")


def files(root: Path) -> Iterator[Path]:
    """Yield the Python files of the packages, without the symbolic links of src/tracehint."""
    packages = [root / package for package in PACKAGES]
    own = [p for p in sorted((root / "src/tracehint").iterdir()) if not p.is_symlink()]
    for place in (*packages, *own):
        yield from [place] if place.suffix == ".py" else sorted(place.rglob("*.py"))


def long_functions(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and message for each function of more than FUNCTION lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if lines > FUNCTION:
                yield node.lineno, f"{node.name} has {lines} lines (at most {FUNCTION}): divide it"


def participles(text: str) -> Iterator[tuple[int, str]]:
    """Yield functions and methods that are named by a participle alone (`moved`)."""
    tree = ast.parse(text)
    bodies = [tree.body, *(n.body for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]
    for node in chain.from_iterable(bodies):
        if not isinstance(node, ast.FunctionDef) or not _PARTICIPLE.fullmatch(node.name):
            continue
        if not any(noun in ast.unparse(d) for d in node.decorator_list for noun in _NOUNS):
            yield node.lineno, f"{node.name}: name it by a verb and its object"


def unformatted(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines that are excluded from formatting without the reason TABLE."""
    for number, line in enumerate(text.split("\n"), 1):
        if _FORMATTED.search(line) and not line.endswith(TABLE):
            yield number, f"only tables are left unformatted, and say so: `{TABLE.strip()}`"


def too_long(text: str) -> Iterator[tuple[int, str]]:
    """Yield a message for a file of more than FILE lines."""
    lines = text.count("\n")
    if lines > FILE:
        yield 1, f"{lines} lines (at most {FILE}): divide it"


Checks = Sequence[Callable[[str], Iterator[tuple[int, str]]]]
PRODUCT: Checks = (long_functions, unformatted, too_long)
TESTS: Checks = (long_functions, unformatted)  # test files may be long


def breaches(root: Path, paths: Iterable[Path], checks: Checks = PRODUCT) -> list[str]:
    """Return the breaches as `file:line: message`."""
    found = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for number, what in chain.from_iterable(check(text) for check in checks):
            found.append(f"{path.relative_to(root)}:{number}: {what}")
    return found


def repeated(paths: Iterable[Path]) -> list[str]:
    """Return class names with several definitions."""
    places: dict[str, list[str]] = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path}:{node.lineno}")
    return [
        f"{name}: one meaning each: {', '.join(where)}"
        for name, where in sorted(places.items())
        if len(where) > 1
    ]


def main() -> int:
    """Print the breaches."""
    product = [
        p for p in files(ROOT) if p.relative_to(ROOT).parts[0] not in ("datasets", "scripts")
    ]
    tests = sorted((ROOT / "tests").rglob("*.py"))
    found = [*breaches(ROOT, files(ROOT)), *breaches(ROOT, tests, TESTS), *repeated(product)]
    found += breaches(ROOT, product, (participles,))
    print("\n".join(found) or "functions and files are of a readable size, names have one meaning")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
