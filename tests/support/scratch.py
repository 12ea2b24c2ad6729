"""How-to pages for developers, carried out in a copy of the source tree.

A page changes the tree by blocks under one of these lines, and runs ```bash blocks in a work
directory; a ```text block after "It prints" must be in their output:

    New `PATH`:                      In `PATH`, after `TEXT OF A LINE`:

A block after "In the clone:" is run in the copy itself.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.built import CCACHE
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("adapters", "analyzer", "collectors", "hintgen", "schemas", "src")
_CHANGE = re.compile(
    r"^(?:New `(?P<new>[^`]+)`|In `(?P<old>[^`]+)`, after `(?P<line>[^`]+)`):\n\n"
    r"```\w+\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_RUN = re.compile(r"(In the clone:\n\n)?^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTS = re.compile(r"^It prints.*?:\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# An editable install finds its own tree before PYTHONPATH: remove its finders.
_START = """import runpy, sys
sys.meta_path[:] = [f for f in sys.meta_path if not type(f).__module__.startswith("_editable")]
runpy.run_module("tracehint", run_name="__main__", alter_sys=True)
"""


def carried_out(page: str, folder: Path) -> tuple[list[str], str]:
    """Return the files that the page changes and its commands' output, which must be as stated."""
    tree, work = folder / "tree", folder / "work"
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tree / package, symlinks=True,
            ignore=shutil.ignore_patterns("bin", "*.egg-info"),
        )  # fmt: skip  # a table
    for name in ("CMakeLists.txt", "Makefile", "scripts"):  # to build the C programs
        (tree / name).symlink_to(ROOT / name)
    touched = [_change(tree, found) for found in _CHANGE.finditer(page)]
    printed = _run(page, tree, work)
    for expected in _PRINTS.findall(page):
        assert all(line in printed for line in expected.splitlines()), printed
    return touched, printed


def _change(tree: Path, found: re.Match[str]) -> str:
    name = found["new"] or found["old"]
    path = tree / name
    if found["new"]:
        assert not path.exists(), name
        path.write_text(found["text"])
        return name
    lines = path.read_text().splitlines(keepends=True)
    at = [number for number, line in enumerate(lines) if found["line"] in line]
    assert len(at) == 1, f"{name}: {found['line']} is in {len(at)} lines"
    lines.insert(at[0] + 1, found["text"])
    path.write_text("".join(lines))
    return name


def _run(page: str, tree: Path, work: Path) -> str:
    work.mkdir()
    program = tree / "tracehint"
    program.write_text(f"#!{sys.executable}\n{_START}")
    program.chmod(0o755)
    more = {
        **CCACHE,
        "PATH": f"{tree}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{tree}/src",
    }
    blocks = [f"(cd {tree}\n{text})" if inside else text for inside, text in _RUN.findall(page)]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)],
        cwd=work, env={**os.environ, **more}, capture_output=True, text=True, timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip  # a table
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
