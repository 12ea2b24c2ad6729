"""What a command line says about itself: its program, its type, its text for people.

Wrappers (env, nice, timeout), shells and interpreters are looked through. All input is bounded:
texts come from strangers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash"})
# Programs whose first argument says what they are.
MULTI_CALL = frozenset({"busybox", "toybox"})
# Version managers: scripts that find the program to run, and then run it in their own place.
_MANAGERS = frozenset(
    {
        f"{m}{part}"
        for m in ("pyenv", "rbenv", "nodenv", "goenv", "jenv", "plenv")
        for part in ("", "-exec")
    }
    | {"asdf", "mise"}
)

_KICKSTART = "-n -N -R -B -L -T -I -w -W -S -s -i -o -e -l"
# Options that take a value, per program that runs another one; then how many words come before it.
WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    "env": (frozenset({"-u", "--unset", "-C", "--chdir", "-S"}), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "ionice": (frozenset({"-c", "-n", "--class", "--classdata"}), 0),
    "nohup": (frozenset(), 0),
    "setsid": (frozenset(), 0),
    "time": (frozenset({"-f", "-o", "--format", "--output"}), 0),
    "gtime": (frozenset({"-f", "-o", "--format", "--output"}), 0),
    "timeout": (frozenset({"-s", "-k", "--signal", "--kill-after"}), 1),
    "stdbuf": (frozenset({"-i", "-o", "-e"}), 0),
    "taskset": (frozenset(), 1),
    "chrt": (frozenset(), 1),
    "numactl": (frozenset({"-N", "-m", "-C", "-i", "-p"}), 0),
    "catchsegv": (frozenset(), 0),
    "prlimit": (frozenset(), 0),
    "unbuffer": (frozenset(), 0),
    "script": (frozenset({"-c"}), 0),
    "flock": (frozenset({"-w", "-E"}), 1),
    "chronic": (frozenset(), 0),
    "resource_monitor": (frozenset({"-i", "-l", "-O", "-L", "-u"}), 0),
    "pegasus-kickstart": (frozenset(_KICKSTART.split()), 0),
}
_LAUNCH_OPTIONS = """-n -np -c -N -H -host --host -hostfile --hostfile -machinefile -f -ppn
    --map-by --bind-to -x -wdir --mca -mca -p -w -t --ntasks --nodes --cpus-per-task --mpi -genv
    -env"""
LAUNCH_OPTIONS = frozenset(_LAUNCH_OPTIONS.split())
# Interpreters: options that take a value; a value of None means that text follows, no script.
INTERPRETERS: dict[str, frozenset[str]] = {
    "python": frozenset({"-W", "-X", "-Q"}),
    "pypy": frozenset({"-W", "-X"}),
    "perl": frozenset({"-I", "-M", "-mod"}),
    "ruby": frozenset({"-I", "-r"}),
    "Rscript": frozenset(),
    "R": frozenset({"-f", "--file"}),
    "java": frozenset({"-cp", "-classpath", "--class-path", "-p", "--module-path"}),
    "node": frozenset({"-r"}),
    "julia": frozenset({"-p", "-t", "-J"}),
    "lua": frozenset(),
    "php": frozenset(),
    "octave": frozenset(),
    "awk": frozenset({"-F", "-v"}),
    "gawk": frozenset({"-F", "-v"}),
    "mawk": frozenset({"-F", "-v"}),
    "tclsh": frozenset(),
}
_TEXT_OPTIONS = {
    "python": "-c", "pypy": "-c", "perl": "-e", "ruby": "-e", "Rscript": "-e", "node": "-e",
    "julia": "-e", "lua": "-e", "php": "-r", "octave": "--eval",
}  # fmt: skip  # a table
_VERSION = re.compile(r"^(python|pypy|perl|ruby|java|lua|php|julia)[-.\d]*(?:m|w)?$")
_MAX_WORDS = 64


@lru_cache(maxsize=4096)
def base_name(word: bytes | str) -> str:
    """The program without its directories and version: `/usr/bin/python3.11` is `python`."""
    text = word.decode("utf-8", "backslashreplace") if isinstance(word, bytes) else word
    name = text.rstrip("/").rpartition("/")[2].lstrip("-") or text
    found = _VERSION.match(name)
    return found[1] if found else name


def is_shim(script: bytes) -> bool:
    """Whether a shell's script is a version manager's that stands in front of a program."""
    folder, _, name = script.rpartition(b"/")
    return folder.endswith(b"/shims") or name.decode("utf-8", "replace") in _MANAGERS


def shell_parts(arguments: Sequence[bytes]) -> tuple[bytes | None, bytes | None]:
    """(text of `-c`, script file) of a shell's arguments; both None: it reads standard input."""
    inline, skip = False, False
    for word in arguments[:_MAX_WORDS]:
        if skip:
            skip = False
        elif word[:1] in (b"-", b"+") and len(word) > 1:
            if word[:2] != b"--":
                inline |= word[:1] == b"-" and b"c" in word
                skip = word.endswith((b"o", b"O"))  # `-euo pipefail`
        else:
            return (word, None) if inline else (None, word)
    return (b"" if inline else None), None


def workflow_name(command: Sequence[str]) -> str:
    """The program of a command line, or the script that a shell or an interpreter is given."""
    if not command:
        return ""
    name, arguments = base_name(command[0]), [os.fsencode(word) for word in command[1:]]
    script: bytes | str | None = None
    if name in SHELLS:
        script = shell_parts(arguments)[1]
    elif name in INTERPRETERS:
        script = script_of(name, arguments)
    return base_name(script) if script else name


def script_of(interpreter: str, arguments: Sequence[bytes]) -> str | None:
    """The script, module or archive that an interpreter runs; None: text or standard input."""
    takes = INTERPRETERS[interpreter]
    text_option = _TEXT_OPTIONS.get(interpreter)
    skip = False
    for i, raw in enumerate(arguments[:_MAX_WORDS]):
        word = raw.decode("utf-8", "backslashreplace")
        if skip:
            skip = False
        elif word == text_option:
            return None
        elif word in ("-m", "-jar") and interpreter in ("python", "pypy", "java"):
            rest = arguments[i + 1 : i + 2]
            return rest[0].decode("utf-8", "backslashreplace") if rest else None
        elif word in takes:
            skip = True
        elif not word.startswith("-"):
            return None if interpreter.endswith("awk") else word
        elif interpreter == "perl" and re.match(r"^-\w*[eE]$", word):
            return None
    return None
