"""Programs that the tests build once per version of their sources, not per module, worker and run.

They are kept in build/tests/, which `make clean` removes; a build also removes those that were not
used for a week.
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
# Go first compiles its standard library, for 20 seconds: with this cache, only once.
GO_CACHE = BUILT / "go"
# The cache of `make`: the C of a copy of the tree is compiled already.
CCACHE = {"CCACHE_DIR": os.environ.get("CCACHE_DIR", os.fspath(ROOT / "build" / "ccache"))}
_WEEK = 7 * 24 * 3600


def built(program: Path, compiler: str, *words: str | Path) -> Path:
    """Run `compiler -o program words...` unless cached; its sources are given as `Path`."""
    kept = BUILT / "c" / f"{program.name}-{_key(compiler, words)}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with (BUILT / "c" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other pytest workers wait: they need it too
        if not kept.exists():
            _forget_old(kept.parent)
            new = kept.with_suffix(".new")
            subprocess.run([compiler, "-o", new, *words], check=True, timeout=PATIENCE_S)
            new.rename(kept)
        os.utime(kept)
    shutil.copy(kept, program)
    return program


def compiling(folder: Path) -> dict[str, str]:
    """Return the environment to compile files below the folder with the cache of `make`."""
    path = f"/usr/lib/ccache{os.pathsep}{os.environ['PATH']}"
    own = {"CCACHE_BASEDIR": os.fspath(folder), "CCACHE_NOHASHDIR": "1", "PATH": path}
    return {**os.environ, **CCACHE, **own}


def _key(compiler: str, words: tuple[str | Path, ...]) -> str:
    """Return a hash of the program's inputs: compiler, flags, sources, headers."""
    place = Path(shutil.which(compiler) or compiler).resolve()
    parts = [f"{place} {place.stat().st_mtime_ns}"]
    parts += [word if isinstance(word, str) else word.name for word in words]
    for path in _read(words):
        parts.append(hashlib.sha256(path.read_bytes()).hexdigest())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _read(words: tuple[str | Path, ...]) -> Iterator[Path]:
    """Yield the sources in the order of the words, then every header of the tree."""
    yield from (word for word in words if isinstance(word, Path) and word.is_file())
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.h"))


def _forget_old(folder: Path) -> None:
    for path in folder.glob("*-*"):
        if path.stat().st_mtime < time.time() - _WEEK:
            path.unlink()
