#!/usr/bin/env python3
"""Execute docs/tutorial/explore.ipynb on a fresh recording of the demo and store its outputs.

`make notebook` runs it; needed after a change of the cells. Needs nbclient and ipykernel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbclient
import nbformat

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "docs" / "tutorial" / "explore.ipynb"


def record(folder: Path) -> Path:
    """Record the bundled workflow below `folder`; return the bundle."""
    work = folder / "demo"
    shutil.copytree(ROOT / "datasets" / "demo", work)
    words = [
        sys.executable,
        *["-m", "tracehint", "record", "--quiet", "-o", "run.trace", "--", "sh", "run.sh"],
    ]
    subprocess.run(words, cwd=work, check=True, capture_output=True, timeout=300)
    return work / "run.trace"


def execute(bundle: Path) -> nbformat.NotebookNode:
    """Return the notebook with the outputs of a run in the bundle's folder."""
    book = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    for name in ("PYTHONPATH", "PATH"):
        first = str(ROOT / "src") if name == "PYTHONPATH" else str(Path(sys.executable).parent)
        os.environ[name] = os.pathsep.join(filter(None, [first, os.environ.get(name, "")]))
    client = nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": bundle.parent}}
    )
    client.execute()
    return book


def clean(book: nbformat.NotebookNode) -> None:
    """Remove metadata that differs between machines and runs."""
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in book.cells:
        for gone in ("execution", "collapsed", "scrolled"):
            cell.metadata.pop(gone, None)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        book = execute(record(Path(folder)))
    clean(book)
    nbformat.write(book, NOTEBOOK)  # type: ignore[no-untyped-call]
    return 0


if __name__ == "__main__":
    sys.exit(main())
