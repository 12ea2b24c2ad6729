"""Build libtracehint.so, with its own observers or with that of the tests."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.built import built

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "collectors" / "preload"
OBSERVER = ROOT / "tests" / "preload" / "observer.c"


def build(folder: Path, *observers: Path) -> Path:
    """Build the library as CMake does; `observers` replace the shipped table."""
    flags = re.findall(r"-[^\s)>]+", _options())
    parts = (path for path in SOURCES.glob("*/*.c") if path.parent.name != "hook")
    own = [SOURCES / "observers.c", *parts]
    sources = [*SOURCES.glob("hook/*.c"), *SOURCES.glob("hook/*.S"), *(observers or own)]
    flags += ["-shared", "-fPIC", "-I"]
    return built(folder / "libtracehint.so", "gcc", *flags, SOURCES, *sources)


@contextlib.contextmanager
def library_in(folder: Path, *observers: Path) -> Iterator[Path]:
    """As `build`, in a folder whose path LD_PRELOAD accepts: it supports no quotes."""
    with contextlib.ExitStack() as stack:
        if set(" :") & set(str(folder)):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
        yield build(folder, *observers)


def _options() -> str:
    text = (SOURCES / "preload.cmake").read_text(encoding="utf-8")
    text = text.replace("${PRELOAD_DIR}", str(SOURCES))
    found = re.findall(r"target_(?:compile|link)_options\(tracehint PRIVATE (.*?)\)\n", text, re.S)
    return " ".join(re.sub(r"\$<\$<COMPILE_LANGUAGE:C>:", " ", part) for part in found)


@dataclass(frozen=True)
class Event:
    """One line of the log of the tests' observer."""

    what: str
    value: int
    pid: int
    shared: bool
    name: str


class Hooked:
    """Runs commands under the library with the tests' observer."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.library, self.folder, self.log = library, folder, folder / "events.log"

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a command under the library."""
        env = {"LD_PRELOAD": str(self.library), "TRACEHINT_TEST": str(self.log)}
        return {**os.environ, **env, **more}

    def run(
        self, *command: str | Path, env: dict[str, str] | None = None, status: int = 0
    ) -> list[Event]:
        """Run a command, which must end with `status`; return the observer's events."""
        self.log.unlink(missing_ok=True)
        env = env or self.environment()
        done = subprocess.run(command, env=env, cwd=self.folder, capture_output=True, check=False)
        self.output = done.stdout + done.stderr
        assert done.returncode == status, self.output
        return self.events()

    def events(self) -> list[Event]:
        """Return all events so far."""
        lines = self.log.read_text(errors="surrogateescape").splitlines()
        found = []
        for line in lines:
            what, value, pid, shared, name = line.split(" ", 4)
            found.append(Event(what, int(value), int(pid), shared == "shared", name))
        return found


def compiled(folder: Path, name: str, text: str, *flags: str) -> Path:
    """Compile a C program and return its path."""
    source = folder / f"{name}.c"
    source.write_text(text)
    subprocess.run(["gcc", "-O1", *flags, source, "-o", folder / name], check=True)
    return folder / name
