"""The recorders of `bench_record`, with the command line of each."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tracehint.collectors.registry import check

OURS = {"preload": "preload", "eBPF": "ebpf", "strace-light": "strace-light", "strace": "strace"}
SLOW = ("strace-light", "strace", "DFTracer", "ReproZip")  # few batches are enough


@dataclass(frozen=True)
class Peer:
    """`words`: output folder and command -> command line. `about`: name and version."""

    words: Callable[[Path, tuple[str, ...]], list[str]]
    about: str = ""


def peers() -> tuple[dict[str, Peer], list[str]]:
    """Return the available recorders, "none" first, and the others with the reason."""
    found = {"none": Peer(lambda _out, command: list(command))}
    missing: list[str] = []
    for name, collector in OURS.items():
        state = check(collector)
        if state.usable:
            found[name] = _ours(collector)
        else:
            missing.append(f"{name}: {state.reason}")
    for name, made in (
        ("Darshan", _darshan()),
        ("DFTracer", _dftracer()),
        ("ReproZip", _reprozip()),
    ):
        if isinstance(made, Peer):
            found[name] = made
        else:
            missing.append(f"{name}: {made}")
    missing.append("Recorder: no package, to be built from its sources")
    return found, missing


def _ours(collector: str) -> Peer:
    words = [sys.executable, "-m", "tracehint", "record", "--quiet", "--collector", collector]
    return Peer(lambda out, command: [*words, "-o", str(out / "t.trace"), "--", *command])


def _darshan() -> Peer | str:
    library = os.environ.get("DARSHAN_LIB")
    if not library or not Path(library).is_file():
        return "no package; $DARSHAN_LIB names its library"
    env = [f"LD_PRELOAD={library}", "DARSHAN_ENABLE_NONMPI=1", "DXT_ENABLE_IO_TRACE=1"]
    return Peer(
        lambda out, command: ["env", *env, f"DARSHAN_LOGPATH={out}", *command], "Darshan with DXT."
    )


def _dftracer() -> Peer | str:
    place = os.environ.get("DFTRACER")
    library = next(Path(place).rglob("libdftracer_preload.so"), None) if place else None
    if library is None:
        return "not installed (pip install dftracer; $DFTRACER names its folder)"
    env = [
        f"LD_PRELOAD={library}", "DFTRACER_ENABLE=1", "DFTRACER_INIT=PRELOAD",
        "DFTRACER_DATA_DIR=all",
    ]  # fmt: skip  # a table
    return Peer(
        lambda out, command: ["env", *env, f"DFTRACER_LOG_FILE={out / 'log'}", *command],
        f"DFTracer {_version(library, 'dftracer')}.",
    )


def _reprozip() -> Peer | str:
    program = os.environ.get("REPROZIP") or shutil.which("reprozip")
    if not program:
        return "not installed (pip install reprozip; $REPROZIP names the program)"
    words = [program, "trace", "--dont-identify-packages", "--overwrite", "-d"]
    return Peer(
        lambda out, command: [*words, str(out / "r"), *command],
        f"ReproZip {_version(Path(program).parent, 'reprozip')}.",
    )


def _version(inside: Path, package: str) -> str:
    """Return the version in the name of the package's metadata, searched in parent folders."""
    for parent in (inside, *inside.parents):
        for place in (parent, *parent.glob("lib*/python*/site-packages")):
            for metadata in place.glob(f"{package}-*.dist-info"):
                return metadata.name.split("-")[1].removesuffix(".dist")
    return "of unknown version"
