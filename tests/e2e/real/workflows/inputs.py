"""Runner for the scripts of datasets/ that create inputs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DATASETS = Path(__file__).parents[4] / "datasets"


def make(script: str, folder: Path, *arguments: str) -> None:
    """Run `datasets/SCRIPT FOLDER ARGUMENTS`."""
    subprocess.run([sys.executable, DATASETS / script, folder, *arguments], check=True)
