#!/usr/bin/env python3
"""Write docs/rules/ from the docstrings of the lint rules."""

from pathlib import Path

from tracehint.hintgen.lint.explain import pages

folder = Path(__file__).resolve().parent.parent / "docs" / "rules"
folder.mkdir(parents=True, exist_ok=True)
wanted = pages()
for stale in folder.glob("*.md"):
    if stale.name not in wanted:
        stale.unlink()
for name, text in wanted.items():
    (folder / name).write_text(text, encoding="utf-8")
