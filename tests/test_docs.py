"""The documentation is true: its commands run, its generated pages are current, its links lead."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if re.search(r"^```sh$", p.read_text(), re.M))
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def shell_blocks(page: Path) -> str:
    """All ```sh blocks of a page, as one script."""
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.M | re.S))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_commands_of_the_page_run(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "tracehint"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tracehint "$@"\n')
    program.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "TRACEHINT_DEMO": str(ROOT / "datasets" / "demo"),
        "TRACEHINT_DATASETS": str(ROOT / "datasets"),
        "TRACEHINT_PYTHON": sys.executable,
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", shell_blocks(page)],
        cwd=work, env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_the_command_reference_is_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "gen_cli_docs.py", "--check"],
        capture_output=True, text=True, env={**os.environ, "COLUMNS": "90"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_every_command_has_its_place_in_the_reference() -> None:
    from tracehint.cli import COMMANDS

    text = (DOCS / "reference" / "commands.md").read_text()
    for name in COMMANDS:
        assert f"\n## {name}\n" in text
