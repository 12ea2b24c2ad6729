"""JX, the language of Makeflow's JSON workflows, evaluated by `jx2json` of cctools: the same
program for the same version of Makeflow.

Workflow files are untrusted, so the program gets limits on CPU time, memory and output. A document
with `fetch()`, whose argument jx2json passes to a shell, is rejected, and so is `listdir()` of
anything but a literal path inside the workflow's directory.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import IO, Any

from tracehint.adapters.engines.graph_base import raw_name
from tracehint.adapters.engines.unpack import parse_json
from tracehint.errors import InputError, MissingDependencyError
from tracehint.limits import check, limit, limit_error, values_of

_PROGRAM = "jx2json"
_MEMORY = 1 << 30
# also inside strings, to avoid a second parser for jx2json's strings
_FETCH = re.compile(r"\bfetch\s*[(#]")
_LISTDIR = re.compile(r"\blistdir\s*[(#]")
_INSIDE = re.compile(r'\blistdir\s*\(\s*"(?!/)(?:(?!\.\.)[^"\\])*"\s*\)')
# jx2json prints each byte beyond ASCII as a signed number: \uffffffc3\uffffffa9
_BYTE = re.compile(rb"\\(?:uffffff([89a-f][0-9a-f])|.)", re.DOTALL)


def load_document(text: str, path: Path) -> Any:
    """Load the document of a JSON or JX workflow. Raises InputError, MissingDependencyError."""
    check("json-values", str(path), values_of(text))
    try:
        return parse_json(text, path)
    except InputError as error:
        return parse_json(evaluate(text, path, error.what), path)


def entry_name(entry: Any) -> bytes | None:
    """Return the name of an entry of a rule's `inputs` or `outputs`: a text, or an object with the
    name in the workflow; None: neither."""
    name = entry.get("dag_name") if isinstance(entry, dict) else entry
    return raw_name(name) if isinstance(name, str) else None


def entry_names(path: Path, number: int, rule: dict[str, Any], key: str) -> list[bytes]:
    """Return the names of `inputs` or `outputs` (`key`) of a rule. Raises InputError."""
    entries = rule.get(key) or []
    if not isinstance(entries, list):
        raise InputError(f"{path}: `{key}` of rule {number} is not a list", "Check the file.")
    return [name for name in map(entry_name, entries) if name is not None]


def evaluate(text: str, path: Path, not_json: str) -> str:
    """Return the JSON of the JX document `text`; its names are relative to the directory of `path`.

    `not_json`: why it is not JSON. Raises InputError, and MissingDependencyError without jx2json.
    """
    program = shutil.which(_PROGRAM)
    if program is None:
        raise MissingDependencyError(
            f"{not_json}; JX is evaluated by {_PROGRAM}, which is not installed",
            "Install cctools (Debian: coop-computing-tools), or, where cctools is, make plain "
            f"JSON: {_PROGRAM} {path.name} > plain.json",
        )
    if _FETCH.search(text):
        raise _error(path, "fetch() is not evaluated: it runs a command line")
    if len(_LISTDIR.findall(text)) > len(_INSIDE.findall(text)):
        raise _error(path, "listdir() is evaluated only for a literal path below the workflow")
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as made:
        source.write(text.encode("utf-8", "surrogateescape"))
        source.seek(0)
        status, errors = _run(program, path.parent, source, made)
        made.seek(0)
        out = _BYTE.sub(_restore_byte, made.read()).decode("utf-8", "surrogateescape")
    if status in _LIMITS:
        raise limit_error(_LIMITS[status], f"{path}: evaluation")
    if status < 0:
        raise _error(
            path,
            f"{_PROGRAM} ended by signal {-status}: nested too deeply, or beyond 1 GiB of memory",
        )
    if status or out.startswith("error("):
        raise _error(path, out.strip() or errors.strip() or f"exit code {status}")
    return out


_LIMITS = {-signal.SIGXCPU: "jx-seconds", -signal.SIGXFSZ: "jx-bytes"}


def _run(program: str, folder: Path, source: IO[bytes], made: IO[bytes]) -> tuple[int, str]:
    """Return exit status and messages; util-linux's prlimit sets the limits before the start."""
    seconds = limit("jx-seconds")  # SIGXCPU at this limit, SIGKILL 5 s later
    bounds = (f"--cpu={seconds}:{seconds + 5}", f"--fsize={limit('jx-bytes')}", f"--as={_MEMORY}")
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(
            ["prlimit", "--core=0", *bounds, program],
            cwd=folder,
            stdin=source,
            stdout=made,
            stderr=errors,
            check=False,
        )
        errors.seek(0)
        return done.returncode, errors.read(1 << 16).decode("utf-8", "backslashreplace")


def _restore_byte(escape: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escape[1].decode()) if escape[1] else escape[0]


def _error(path: Path, why: str) -> InputError:
    return InputError(
        f"{path}: neither JSON nor JX: {why[:300]}",
        f"Check it with {_PROGRAM}, which also takes values from outside: "
        f"{_PROGRAM} --define NAME=VALUE {path.name} > plain.json",
    )
