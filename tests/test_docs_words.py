"""Pages and help use the words of the field, each in one meaning."""

from __future__ import annotations

import re
from pathlib import Path

import click

from tracehint.cli import COMMANDS, cli

ROOT = Path(__file__).parent.parent

# A word of ours -> the field's (docs/glossary.md). Names of fields and files keep theirs: they
# stand in `code` or in examples.
OLD_WORDS = {
    r"peek(s|ed)?": "header read",
    r"portions?": "partition",
    r"episodes?": "session",
    r"rungs?": "fallback level",
    r"company": "sibling names",
    r"quarrels?": "conflict",
    r"hand-?overs?": "transfer",
}


def _old_words(text: str) -> list[str]:
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL)
    return [
        f"{found[0]} (say: {new})"
        for old, new in OLD_WORDS.items()
        for found in re.finditer(rf"\b{old}\b", prose, re.IGNORECASE)
    ]


def test_pages_speak_in_the_words_of_the_field() -> None:
    own = {"ebpf.md", "preload.md", "ebpf-collector.md"}  # data structures of a recorder
    pages = [p for p in sorted((ROOT / "docs").rglob("*.md")) if p.name not in own]
    found = {str(p.relative_to(ROOT)): _old_words(p.read_text()) for p in pages}
    found = {name: [w for w in words if not _is_a_column(name, w)] for name, words in found.items()}
    assert not {name: words for name, words in found.items() if words}
    assert _old_words("A peek, `peek`, [why](peeks.md)") == ["peek (say: header read)"]


def _is_a_column(page: str, word: str) -> bool:
    """Lists of evidence in the rules of patterns name fields."""
    return page == "docs/patterns.md" and word.startswith("peeks ")


def test_help_speaks_in_the_words_of_the_field() -> None:
    for name in COMMANDS:
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        with click.Context(command, info_name=name) as context:
            records = [param.get_help_record(context) for param in command.params]
        shown = " ".join(" ".join(record) for record in records if record)
        assert not _old_words(f"{command.help} {shown}"), name
        bare = [p.name for p in command.params if isinstance(p, click.Option) and not _told(p)]
        assert not bare, f"{name}: options without a word of help: {bare}"


def _told(option: click.Option) -> bool:
    """-o, --format and --help say what they do by their name."""
    return bool(option.help) or option.name in ("fmt", "form", "output") or option.hidden


def test_old_names_of_options_work_and_are_not_shown(tmp_path: Path) -> None:
    command = cli.get_command(None, "analyze")  # type: ignore[arg-type]
    assert command is not None
    with click.Context(command, info_name="analyze") as context:
        assert "--peek-share" not in command.get_help(context)
    for name in ("--peek-share", "--header-read-share"):
        context = command.make_context("analyze", [str(tmp_path), name, "0.1"])
        assert context.params["peek_share"] == 0.1
