"""Writing of measured tables into pages of the documentation."""

from __future__ import annotations

from pathlib import Path

END = "<!-- end -->"


def into_page(page: Path, mark: str, table: str) -> None:
    """Replace the text between `<!-- mark -->` and the next end mark. Raises ValueError."""
    text = page.read_text(encoding="utf-8")
    head, begin, rest = text.partition(f"<!-- {mark} -->\n")
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} has no place for {mark}")
    page.write_text(f"{head}{begin}{table.rstrip()}\n{end}{tail}", encoding="utf-8")
