"""Programs that the tests build: once for the same sources, not once a module, worker and run.

They are kept in build/tests/, which `make clean` removes; one that was not used for a week goes
when another is built.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
PACKAGES = ("adapters", "analyzer", "collectors", "tests")  # those with C in them
BUILT = ROOT / "build" / "tests"
# Go compiles its standard library first, for 20 seconds: `go build` with this compiles it once.
GO_CACHE = BUILT / "go"
# What `make` keeps there: the C of a copy of the tree is compiled already.
CCACHE = {"CCACHE_DIR": os.environ.get("CCACHE_DIR", os.fspath(ROOT / "build" / "ccache"))}
_WEEK = 7 * 24 * 3600


def built(program: Path, compiler: str, *words: str | Path) -> Path:
    """`compiler -o program words...`; its sources are given as `Path`."""
    kept = BUILT / "c" / f"{program.name}-{_key(compiler, words)}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with (BUILT / "c" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers of pytest wait: they want it as well
        if not kept.exists():
            _forget_old(kept.parent)
            new = kept.with_suffix(".new")
            subprocess.run([compiler, "-o", new, *words], check=True, timeout=PATIENCE_S)
            new.rename(kept)
        os.utime(kept)
    shutil.copy(kept, program)
    return program


def compiling(folder: Path) -> dict[str, str]:
    """The environment of a program that compiles what lies below the folder, as `make` does it."""
    path = f"/usr/lib/ccache{os.pathsep}{os.environ['PATH']}"
    own = {"CCACHE_BASEDIR": os.fspath(folder), "CCACHE_NOHASHDIR": "1", "PATH": path}
    return {**os.environ, **CCACHE, **own}


def _key(compiler: str, words: tuple[str | Path, ...]) -> str:
    """Of all that the program is made of: the compiler, the flags, the sources, their headers."""
    place = Path(shutil.which(compiler) or compiler).resolve()
    parts = [f"{place} {place.stat().st_mtime_ns}"]
    parts += [word if isinstance(word, str) else word.name for word in words]
    for path in _read(words):
        parts.append(hashlib.sha256(path.read_bytes()).hexdigest())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _read(words: tuple[str | Path, ...]) -> Iterator[Path]:
    """The sources in the order of the words, then every header of the tree that may be ours."""
    yield from (word for word in words if isinstance(word, Path) and word.is_file())
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.h"))


def _forget_old(folder: Path) -> None:
    for path in folder.glob("*-*"):
        if path.stat().st_mtime < time.time() - _WEEK:
            path.unlink()
