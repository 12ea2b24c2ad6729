"""Pages, help and messages use the terms of the field (`scripts/prose.py`)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tracehint.cli import COMMANDS, cli

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_docs_help_and_messages_avoid_the_words_of_the_list(tmp_path: Path) -> None:
    prose = [sys.executable, ROOT / "scripts" / "prose.py"]
    done = subprocess.run(prose, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "")
    (tmp_path / "scripts").mkdir()
    shutil.copy(prose[1], tmp_path / "scripts")
    (tmp_path / "README.md").write_text("Files\nlie where `it lies`.\n")
    (tmp_path / "CONTRIBUTING.md").write_text("```\nit says\n```\n")
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "a.py").write_text('"""It says."""\nTEXT = "nobody reads"\n')
    prose[1] = tmp_path / "scripts" / "prose.py"
    done = subprocess.run(prose, capture_output=True, text=True, check=False)
    found = [line.rpartition(":")[0] for line in done.stdout.splitlines()]
    assert done.returncode == 1 and found == ["README.md:2: 'lie'", "schemas/a.py:2: 'nobody'"]


def test_every_option_has_a_help_text() -> None:
    for name in COMMANDS:
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
        plain = ("fmt", "form", "output")  # the name describes them
        assert [p.name for p in options if not p.help and p.name not in plain] == [], name


def test_old_names_of_options_work_and_are_not_shown(tmp_path: Path) -> None:
    command = cli.get_command(None, "analyze")  # type: ignore[arg-type]
    assert command is not None
    with click.Context(command, info_name="analyze") as context:
        assert "--peek-share" not in command.get_help(context)
    for name in ("--peek-share", "--header-read-share"):
        context = command.make_context("analyze", [str(tmp_path), name, "0.1"])
        assert context.params["peek_share"] == 0.1
