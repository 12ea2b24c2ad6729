"""Classify a path argument of the wrong kind and suggest a remedy, the same for all commands.

Commands require a recording (bundle), a run (bundle or analysis) or a hint file. Another kind of
argument is recognised here by its first bytes; nothing else of it is read.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

_HEAD = 4096
_MANIFEST = "manifest.json"


_GIVE_BUNDLE = "Give the directory that `tracehint record` or `import` wrote. "
_GIVE_HINTS = "Give the file that `tracehint hints NAME.trace -o FILE` wrote."
_IMPORT = "tracehint import {path} -o NEW.trace"

# wanted kind -> kind of the argument -> problem, remedy
ANSWERS: dict[str, dict[str, tuple[str, str]]] = {
    "bundle": {
        "absent": ("no such bundle", "Record one: tracehint profile -- COMMAND"),
        "bundle": ("cannot be read", "Record the run again."),
        "results": ("the results of `tracehint profile`, not the recording",
                    "Give the recording: {run}"),
        "hints": ("a hint file, not a trace bundle", "Give the recording it was derived from."),
        "analysis": ("the output of `tracehint analyze`, not a trace bundle",
                     "Give the recording itself; hints, lint, graph, report and diff read this."),
        "json": ("a JSON file, not a trace bundle",
                 _GIVE_BUNDLE + "Convert an engine's graph: " + _IMPORT),
        "script": ("a program, not a recording of one",
                   "Record it: tracehint profile -- {command}"),
        "file": ("a file, not a trace bundle",
                 _GIVE_BUNDLE + "Convert a log or workflow: " + _IMPORT),
        "bundles": ("a directory of trace bundles, not a bundle",
                    "Give one, or join them: tracehint merge {path} -o NEW.trace"),
        "directory": ("not a trace bundle (no manifest.json)",
                      _GIVE_BUNDLE + "Convert logs: " + _IMPORT),
    },
    "hints": {
        "absent": ("no such file", "{near}Create it: tracehint hints NAME.trace -o {path}"),
        "bundle": ("a trace bundle, not a hint file",
                   "Create hints from it: tracehint hints {path} -o hints.json"),
        "results": ("a directory, not a hint file", "Give the file in it: {path}/hints.json"),
        "hints": ("cannot be read", "Write it again with `tracehint hints`."),
        "analysis": ("the output of `tracehint analyze`, not a hint file",
                     "Create hints from it: tracehint hints {path} -o hints.json"),
        "json": ("a JSON file, not a hint file", _GIVE_HINTS),
        "script": ("a program, not a hint file", "Record it first: tracehint profile -- {command}"),
        "file": ("a file, but not a hint file", _GIVE_HINTS),
        "bundles": ("a directory, not a hint file", _GIVE_HINTS),
        "directory": ("a directory, not a hint file", _GIVE_HINTS),
    },
}  # fmt: skip  # a table


def what_is(path: Path) -> str:
    """Return the kind of the file at the path: an inner key of ANSWERS; never raises."""
    try:
        if path.is_dir():
            if (path / _MANIFEST).is_file():
                return "bundle"
            if (path / "run.json").is_file() and (path / "tasks.parquet").is_file():
                return "analysis"
            inside = (path / "hints.json").is_file() or (path / "analysis.json").is_file()
            return "results" if inside else "bundles" if bundles_in(path) else "directory"
        if not path.is_file():
            return "file" if path.exists() else "absent"
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except (OSError, ValueError):
        return "file"
    return _kind(path, head)


def bundles_in(path: Path) -> list[Path]:
    """Return the trace bundles directly in a directory, sorted by name; none if the directory is
    a bundle itself or cannot be read."""
    try:
        if not path.is_dir() or (path / _MANIFEST).is_file():
            return []
        with os.scandir(path) as entries:
            names = sorted(one.name for one in entries if one.is_dir())
        return [path / name for name in names if (path / name / _MANIFEST).is_file()]
    except (OSError, ValueError):
        return []


def _kind(path: Path, head: bytes) -> str:
    if b'"tracehint.hints/' in head:
        return "hints"
    if b'"tracehint.analysis/' in head:
        return "analysis"
    if head.lstrip()[:1] in (b"{", b"["):
        return "json"
    programs = (".sh", ".py", ".pl", ".R", ".r", ".bash")
    return "script" if head[:2] == b"#!" or path.suffix in programs else "file"


def instead(wanted: str, path: Path) -> tuple[str, str]:
    """Return problem and remedy for a path that is not a bundle (or hint file)."""
    text, remedy = ANSWERS[wanted][what_is(path)]
    near = _find_results_near(path)
    filled = remedy.format(
        path=shlex.quote(str(path)),
        run=_recording(path),
        command=_command(path),
        near=f"There is {shlex.quote(str(near))}. " if near else "",
    )
    return f"{path}: {text}", filled


def _recording(folder: Path) -> str:
    """Return `NAME.trace` next to `NAME.tracehint`, or a description of it."""
    beside = folder.with_name(folder.name.removesuffix(".tracehint") + ".trace")
    found = (beside / "manifest.json").is_file()
    return shlex.quote(str(beside)) if found else "the directory NAME.trace that belongs to it"


def _command(path: Path) -> str:
    """Return the command that starts a program or script."""
    with_what = {".py": "python3 ", ".pl": "perl ", ".R": "Rscript ", ".r": "Rscript "}
    name = shlex.quote(str(path))
    return with_what.get(path.suffix, "sh ") + name


def _find_results_near(path: Path) -> Path | None:
    """Return the only file of this name in a `profile` result next to the path, or None."""
    try:
        found = sorted(path.parent.glob(f"*.tracehint/{path.name}"))
    except (OSError, ValueError):
        return None
    return found[0] if len(found) == 1 else None
