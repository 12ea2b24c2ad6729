"""Run the command line as users do: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def tracehint(
    *arguments: str | Path, cwd: Path, env: dict[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """`python -m tracehint ...` in `cwd`, with what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "tracehint", *map(str, arguments)],
        cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True,
        errors="surrogateescape", timeout=120, check=False, **more,
    )  # fmt: skip
