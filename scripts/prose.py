"""Words that docs, help texts and messages avoid, each with the field's word (`make lint`).

Checks README, CONTRIBUTING and docs without code; sentences in string literals of the product;
docstrings of commands and lint rules, which are help texts. Prints each place and exits with 1 if
there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("adapters", "analyzer", "collectors", "hintgen", "schemas", "src/tracehint")
HELP = ("src/tracehint/commands/", "src/tracehint/cli.py", "hintgen/lint/rules/")
WORDS = (
    (r"told|tells?|telling|taught|teach(?:es)?", "reports, prints, shows; distinguished"),
    (r"sa(?:id|ys?|ying)|unsaid", "reports, states, prints; supported"),
    (r"nobody|somebody|anybody|everybody|no one|whoever", "the task, the user, the store"),
    (r"lies?|lay|lying|st(?:ands?|ood)", "is stored, is located; means"),
    (r"less waiting|need not be waited|not go over the network", "blocking traffic"),
    (r"worth", "significant; pays"),
    (r"(?:a|no|that a) (?:rule|hint) is for", "matching"),
    (r"an? (?:name|host|line|file|record|task|node|part|row|call|program|word) an? \w+", "one per"),
    (r"hand-?overs?|header peeks?|peek(?:ed|ing)|a peek", "transfer; header read"),
    (r"portions?|episodes?|rungs?|quarrels?", "partition; session; fallback level; conflict"),
    (r"ready-made", "built-in"),
    (r"hardly|in silence", "almost not; every ... is reported"),
    (r"as ever", "unmodified, as before"),
    (r"not to be (?:seen|had|found)|to be had", "not accessible, not available"),
    (r"taken (?:for|as|back)|not taken", "counted as; undone; rejected"),
    (r"(?:how|are|is) sure", "confidence"),
    (r"of ours", "of tracehint"),
)  # fmt: skip  # a table
RULES = [(re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.I), better) for words, better in WORDS]
CODE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)|^ {4}\S.*?$|`[^`\n]*`|\]\([^)\n]*\)", re.M | re.S)
SQL = re.compile(r"\b(?:SELECT|select|where|WHERE)\b.*\b(?:from|FROM|and|not|IN|AND)\b", re.S)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`')


def without_code(text: str) -> str:
    """Replace the code in Markdown by blanks, line by line."""
    return CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def python_texts(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences in string literals; docstrings only if they are help texts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = (getattr(node, "body", None) for node in ast.walk(tree))
    first = (body[0] for body in bodies if isinstance(body, list) and body)
    docstrings = {id(node.value) for node in first if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        shown = id(node) not in docstrings or name.startswith(HELP)
        if shown and " " in node.value and not SQL.search(node.value):
            yield node.lineno, node.value


def texts() -> Iterator[tuple[str, int, str]]:
    """Yield file, line and text of everything that a user reads."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        yield str(page.relative_to(ROOT)), 1, without_code(page.read_text(encoding="utf-8"))
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*.*")):
            name = str(path.relative_to(ROOT))
            if path.suffix == ".py":
                yield from ((name, line, text) for line, text in python_texts(path, name))
            elif path.suffix in {".c", ".js"} and "vendor" not in path.parts:
                for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
                    found = (m[1] or m[2] or "" for m in LITERAL.finditer(line))
                    yield from ((name, number, text) for text in found if " " in text)


def main() -> int:
    found = [
        f"{name}:{line + text.count(chr(10), 0, hit.start())}: {hit[0]!r}: {better}"
        for name, line, text in texts()
        for words, better in RULES
        for hit in words.finditer(text)
    ]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
