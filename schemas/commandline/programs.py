"""Find what a command line runs: the program behind wrappers, or the script of a shell or an
interpreter. All input is bounded: command lines come from other users.

scripts/gen_interpreters.py generates collectors/preload/tag/interpreters.h from these tables,
so that the preload library derives the same process word from /proc/PID/cmdline.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from tracehint.schemas.commandline.shelltext import word_set

SHELLS = word_set("sh bash dash zsh ksh mksh ash rbash")
# Programs whose first argument is the program.
MULTI_CALL = frozenset({"busybox", "toybox"})
LAUNCHERS = word_set(
    """aprun flux hydra_pmi_proxy ibrun jsrun mpiexec mpiexec.hydra mpirun orted orterun prted
    prterun prun srun"""
)
DAEMONS = frozenset({"orted", "prted", "hydra_pmi_proxy"})  # started by launchers themselves
# Version managers: scripts that find the program to run, and then exec it.
_MANAGERS = frozenset(
    {
        f"{m}{part}"
        for m in ("pyenv", "rbenv", "nodenv", "goenv", "jenv", "plenv")
        for part in ("", "-exec")
    }
    | {"asdf", "mise"}
)


class Wrapper(NamedTuple):
    """A program that runs another one: its options with a value, the count of its own arguments."""

    values: str
    operands: int = 0


WRAPPERS = {
    "env": Wrapper("-u --unset -C --chdir -S"),
    "nice": Wrapper("-n --adjustment"),
    "ionice": Wrapper("-c -n --class --classdata"),
    "nohup": Wrapper(""),
    "setsid": Wrapper(""),
    "time": Wrapper("-f -o --format --output"),
    "gtime": Wrapper("-f -o --format --output"),
    "timeout": Wrapper("-s -k --signal --kill-after", 1),
    "stdbuf": Wrapper("-i -o -e"),
    "taskset": Wrapper("", 1),
    "chrt": Wrapper("", 1),
    "numactl": Wrapper("-N -m -C -i -p"),
    "catchsegv": Wrapper(""),
    "prlimit": Wrapper(""),
    "unbuffer": Wrapper(""),
    "script": Wrapper("-c"),
    "flock": Wrapper("-w -E", 1),
    "chronic": Wrapper(""),
    "resource_monitor": Wrapper("-i -l -O -L -u"),
    "salloc": Wrapper("-A -B -c -C -d -D -F -G -J -L -m -M -n -N -p -q -S -t -w -x"),
    "pegasus-kickstart": Wrapper("-n -N -R -B -L -T -I -w -W -S -s -i -o -e -l"),
}
_BUILTINS = frozenset({"exec", "command", "builtin", "nohup"})
_LAUNCHER = Wrapper(
    """-n -np -c -N -H -host --host -hostfile --hostfile -machinefile -f -ppn --map-by --bind-to
    -x -wdir --mca -mca -p -w -t --ntasks --nodes --cpus-per-task --mpi -genv -env"""
)


class Interpreter(NamedTuple):
    """Options followed by a value, by program text, by a script. script: the first argument is a
    script."""

    values: str = ""
    texts: str = ""
    scripts: str = ""
    script: bool = True


# Names have no version suffix (python3.11). A text option may end a cluster of flags (-lne).
INTERPRETERS = {
    "python": Interpreter("-W -X -Q", "-c", "-m"),
    "pypy": Interpreter("-W -X", "-c", "-m"),
    "perl": Interpreter("-I -M", "-e -E"),
    "ruby": Interpreter("-I -r", "-e"),
    "Rscript": Interpreter("", "-e"),
    "R": Interpreter("-f --file", script=False),
    "java": Interpreter("-cp -classpath --class-path -p --module-path", "", "-jar -m"),
    "node": Interpreter("-r", "-e -p"),
    "julia": Interpreter("-p -t -J", "-e"),
    "lua": Interpreter("", "-e"),
    "php": Interpreter("", "-r", "-f"),
    "octave": Interpreter("", "--eval"),
    "awk": Interpreter("-F -v", script=False),
    "gawk": Interpreter("-F -v", script=False),
    "mawk": Interpreter("-F -v", script=False),
    "tclsh": Interpreter(),
}
_VERSION = re.compile(r"^(python|pypy|perl|ruby|java|lua|php|julia)[-.\d]*(?:m|w)?$")
MOST_BYTES = 4096  # of a command line that determine its process word
LONGEST = 255  # bytes of a process word


@lru_cache(maxsize=4096)
def base_name(word: bytes | str) -> str:
    """Return the program without directories and version: `/usr/bin/python3.11` is `python`."""
    text = word.decode("utf-8", "backslashreplace") if isinstance(word, bytes) else word
    name = text.rstrip("/").rpartition("/")[2].lstrip("-") or text
    found = _VERSION.match(name)
    return found[1] if found else name


def is_shim(script: bytes) -> bool:
    """Whether a shell's script is a version manager's wrapper of a program."""
    folder, _, name = script.rpartition(b"/")
    return folder.endswith(b"/shims") or name.decode("utf-8", "replace") in _MANAGERS


def shell_parts(arguments: Iterable[bytes]) -> tuple[bytes | None, bytes | None]:
    """Return (text of `-c`, script file) of a shell's arguments; both None: standard input."""
    inline, skip = False, False
    for word in arguments:
        if skip:
            skip = False
        elif word[:1] in (b"-", b"+") and len(word) > 1:
            if word[:2] != b"--":
                inline |= word[:1] == b"-" and b"c" in word
                skip = word.endswith((b"o", b"O"))  # `-euo pipefail`
        else:
            return (word, None) if inline else (None, word)
    return (b"" if inline else None), None


def script_of(interpreter: str, arguments: Sequence[bytes]) -> bytes | None:
    """Return the script, module or archive that an interpreter runs; None: text or stdin."""
    options = INTERPRETERS[interpreter]
    values, scripts = options.values.encode().split(), options.scripts.encode().split()
    skip = False
    for at, word in enumerate(arguments):
        if skip:
            skip = False
        elif _is_text_option(word, options, values):
            return None
        elif word in scripts:
            return arguments[at + 1] if at + 1 < len(arguments) else None
        elif word in values:
            skip = True
        elif not word.startswith(b"-"):
            return word if options.script else None
    return None


def _is_text_option(word: bytes, options: Interpreter, values: Sequence[bytes]) -> bool:
    """Whether the word is `-e`, or a cluster of flags that ends with it: `-lne`; not `-Mre`."""
    texts = options.texts.encode().split()
    if word in texts:
        return True
    cluster = len(word) > 2 and word[:1] == b"-" and word[1:].isalnum()
    return cluster and word[:2] not in values and b"-" + word[-1:] in texts


def strip_wrappers(words: list[str]) -> list[str]:
    """Remove leading `env A=B`, `nice`, `timeout 5`, `mpirun -n 4` and the like."""
    while words:
        name = base_name(words[0])
        if name in _BUILTINS:
            words = words[1:]
        elif name in WRAPPERS or (name in LAUNCHERS and name not in DAEMONS):
            rest = _behind(words[1:], WRAPPERS.get(name, _LAUNCHER), name == "env")
            if not rest:
                return words
            words = rest
        elif name == "tracehint" and words[1:2] == ["task"]:
            words = words[words.index("--") + 1 :] if "--" in words else words[3:]
        else:
            break
    return words


def _behind(words: list[str], wrapper: Wrapper, assignments: bool) -> list[str]:
    """Return the words after a wrapper's options and operands."""
    values = wrapper.values.split()
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            i += 1
            break
        if word in values:
            i += 1
        elif not (word.startswith("-") and len(word) > 1) and not (
            assignments and "=" in word and not word.startswith("=")
        ):
            break
        i += 1
    return words[i + wrapper.operands :]


# The options of an xargs that runs one command with all arguments, up to that command.
_XARGS_OPTIONS = re.compile(
    r"""(?: - (?: [0oprtx]+ | [0oprtx]*[adE]\0?[^\0]+ | e[^\0]*
                | -(?:arg-file|delimiter)[=\0][^\0]* | -eof(?:=[^\0]*)?
                | -(?:null|no-run-if-empty|verbose|exit|interactive|open-tty|show-limits|) ) \0 )*
        (?=[^-\0])""",
    re.VERBOSE,
)


def command_of_xargs(words: Sequence[str]) -> list[str]:
    """Return the words of the command that `xargs -0 CMD ...` runs with all arguments. Empty: it
    splits them into several commands (-n, -L, -I, -P, -s), or names no command."""
    text = "\0".join(words[1:])
    options = _XARGS_OPTIONS.match(text)
    return text[options.end() :].split("\0") if options else []


def workflow_name(command: Sequence[str]) -> str:
    """Return the program of a command line, or the script of its shell or interpreter, without
    wrappers (`salloc -N5`, `env`, `nice`)."""
    command = strip_wrappers(list(command)) or command
    if not command:
        return ""
    name, arguments = base_name(command[0]), [os.fsencode(word) for word in command[1:]]
    script: bytes | None = None
    if name in SHELLS:
        script = shell_parts(arguments)[1]
    elif name in INTERPRETERS:
        script = script_of(name, arguments)
    return base_name(script) if script else name


def is_interpreter(first: bytes) -> bool:
    """Whether a process word depends on more than the first word of the command line."""
    name = _last_part(first)
    return name.decode("latin-1") in SHELLS or _script_interpreter(name) is not None


def process_word(argv: Sequence[bytes]) -> bytes:
    """Return the word that identifies a running process: its program, or the script that it
    interprets. Empty: there is none (a shell with text, an interpreter's prompt).

        process_word([b"/usr/bin/python3.11", b"-u", b"bin/mix.py", b"7"])  # b"mix.py"
    """
    if not argv:
        return b""
    whole = b"".join(word + b"\0" for word in argv)[:MOST_BYTES]
    words = whole.split(b"\0")[:-1]  # the last one is empty or cut
    name = _last_part(words[0]) if words else b""
    interpreter = _script_interpreter(name)
    if name.decode("latin-1") in SHELLS:
        name = _last_part(shell_parts(words[1:])[1] or b"")
    elif interpreter is not None:
        name = _last_part(script_of(interpreter, words[1:]) or b"")
    return name if len(name) <= LONGEST else b""


def _script_interpreter(name: bytes) -> str | None:
    """Return the interpreter of scripts with this program name, or None."""
    text = name.rstrip(b"0123456789.-").decode("latin-1")
    return text if text in INTERPRETERS and INTERPRETERS[text].script else None


def _last_part(path: bytes) -> bytes:
    """Return the last component, without the dash of a login shell."""
    return path.rpartition(b"/")[2].lstrip(b"-")
