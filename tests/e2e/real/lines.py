"""Calls of a `strace -f -ttt -y` log in order; shares no code with the collectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Calls that open, transfer, name or pass on files, and calls that create processes.
CALLS = (
    "open,openat,creat,close,close_range,dup,dup2,dup3,fcntl,lseek,read,pread64,readv,preadv,"
    "preadv2,write,pwrite64,writev,pwritev,pwritev2,mmap,copy_file_range,sendfile,splice,"
    "ftruncate,truncate,rename,renameat,renameat2,unlink,unlinkat,link,linkat,symlink,symlinkat,"
    "clone,clone3,fork,vfork,execve,execveat,chdir,fchdir,exit_group,fallocate,ioctl"
)
_LINE = re.compile(r"^(\d+) +(\d+\.\d+) (.*)$")
_CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)(.*)$", re.DOTALL)
_RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$", re.DOTALL)
# The thread was killed inside a call, so strace could not read the result.
_DEAD = ("???(", "<... ??? resumed>")
_ESCAPE = re.compile(r'\\(?:([0-7]{1,3})|x([0-9a-f]{2})|([abfnrtv"\\]))')
_LETTER = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, '"': 34, "\\": 92}


@dataclass(frozen=True)
class Call:
    """One finished call of one thread."""

    pid: int
    at: float  # seconds since the epoch, at the start of the call
    name: str
    args: list[str]  # as printed
    result: int  # negative: the call failed
    path: str  # path that strace printed for the returned descriptor


@dataclass(frozen=True)
class Gone:
    """The end of a thread."""

    pid: int
    at: float


def calls(log: Path) -> Iterator[Call | Gone]:
    """Yield the log's calls in the order of their completion."""
    begun: dict[int, tuple[float, str]] = {}
    with log.open(encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            match = _LINE.match(line.rstrip("\n"))
            assert match, f"not a line of strace: {line!r}"
            pid, at, rest = int(match[1]), float(match[2]), match[3]
            if rest.startswith(("+++", "---")):
                if rest.startswith("+++"):
                    yield Gone(pid, at)
                continue
            if rest.startswith(_DEAD):
                begun.pop(pid, None)
                continue
            if rest.endswith("<unfinished ...>"):
                begun[pid] = (at, rest.removesuffix("<unfinished ...>"))
                continue
            resumed = _RESUMED.match(rest)
            if resumed:
                at, head = begun.pop(pid)
                rest = head + resumed[2]
            done = _CALL.match(rest)
            assert done, f"not a call: {line!r}"
            if done[3] != "?":
                path = re.match(r"<(.*)>", done[4])
                yield Call(
                    pid, at, done[1], _split(done[2]), int(done[3], 0), path[1] if path else ""
                )


def _split(text: str) -> list[str]:
    """Split arguments at the outer commas; strings and brackets stay whole."""
    parts, depth, quoted, escaped, begin = [], 0, False, False, 0
    for k, letter in enumerate(text):
        if quoted:
            if not escaped and letter == '"':
                quoted = False
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            quoted = True
        elif letter in "[{(<":
            depth += 1
        elif letter in "]})>":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[begin:k].strip())
            begin = k + 1
    return [*parts, text[begin:].strip()]


def text(printed: str) -> str:
    """Return the quoted string of a printed argument."""
    inner = printed[printed.index('"') + 1 : printed.rindex('"')]

    def letter(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 8))
        return chr(int(match[2], 16) if match[2] else _LETTER[match[3]])

    return (
        _ESCAPE.sub(letter, inner)
        .encode("latin-1", "surrogateescape")
        .decode("utf-8", "surrogateescape")
    )


def words(printed: str) -> list[str]:
    """Return the strings of a printed array of strings."""
    return [text(w) for w in _split(printed[1 : printed.rindex("]")]) if '"' in w]
