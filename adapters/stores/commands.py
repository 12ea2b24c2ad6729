"""Stores with command-line tools: tables of words (named values), and the calls that set them.

All words of one object go into one call (`lfs setstripe -c 1 -S 1048576 DIR`). A setting's value
is its words in a fixed order (`count=1 size=1048576`): each is checked against its grammar before
it becomes an argument, also when it is read from a journal.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Self

from msgspec import Meta, Struct

from tracehint.adapters.stores.base import Gap, Location, Setting
from tracehint.adapters.stores.grammar import (
    HOST,
    bytes_of,
    check_word,
    join_words,
    parse_words,
    same_words,
)
from tracehint.adapters.stores.table import Table
from tracehint.errors import InputError, MissingDependencyError, UsageError

if TYPE_CHECKING:
    from tracehint.adapters.plan import Kind

TIMEOUT_S = 30


def run_tool(
    argv: Sequence[str], *, fd: int | None = None, fds: Sequence[int] = (), remedy: str = ""
) -> str:
    """Return the output of a tool that inherits the descriptors; raises OSError (its message)."""
    if shutil.which(argv[0]) is None:
        raise MissingDependencyError(
            f"{argv[0]} is not installed", remedy or "Run it where the store's tools are."
        )
    keep = [*fds, *([fd] if fd is not None else [])]
    try:
        done = subprocess.run(
            list(argv),
            pass_fds=keep,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, f"{argv[0]} did not answer") from None
    text = done.stdout.decode("utf-8", "backslashreplace")
    if done.returncode != 0:
        message = (text + done.stderr.decode("utf-8", "backslashreplace")).strip()
        message = message.removeprefix(f"{fd_path(fd)}:").strip() if fd is not None else message
        raise OSError(errno.EINVAL, message.splitlines()[0][:200] if message else "the tool failed")
    return text


def fd_path(fd: int) -> str:
    """Return a path to the open descriptor for a tool that inherits it."""
    return f"/proc/self/fd/{fd}"


OPTIONS, PATH, SERVER = "{options}", "{path}", "{server}"  # placeholders in an argument vector
_PROGRAM = re.compile(r"[a-z][a-z0-9_-]{0,40}")
# Tools for stores without a mount may interpret names as patterns or command lines.
PLAIN_NAME = re.compile(r"([A-Za-z0-9_.+=,~/-][A-Za-z0-9_.+=,~/-]*)?")


def _check_regex(text: str) -> None:
    """Raise ValueError unless the text is a regular expression with one group."""
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"{text[:80]!r}: {error}") from None
    if groups != 1:
        raise ValueError(f"the regular expression {text[:80]!r} must have one group")


def _check_call(argv: Sequence[str]) -> None:
    """Raise ValueError unless the argument vector starts with a plain program name."""
    if not argv or not _PROGRAM.fullmatch(argv[0]):
        raise ValueError(f"{list(argv)!r:.80} is not an argument vector of a program")


class NamedValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One named value of a command: its kind (a key of grammar.KINDS, or alternatives separated by
    |), its arguments with `{}`, and how the tool prints it."""

    kind: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_|]+\Z")]
    option: Annotated[tuple[str, ...], Meta(min_length=1)]
    read: str = ""  # regular expression with one group, for the output of `get`
    means: dict[str, str] = {}

    def __post_init__(self) -> None:
        if self.read:
            _check_regex(self.read)


class ObjectCommand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The argument vectors that set, read and unset the words of one object."""

    set: tuple[str, ...]
    words: dict[str, NamedValue] = {}
    get: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    creates: bool = False  # the call creates the file, which must not exist

    def __post_init__(self) -> None:
        for argv in filter(None, (self.get, self.unset)):
            _check_call(argv)
        _check_call(self.set)
        if OPTIONS not in self.set:
            raise ValueError(f"set has no place for {OPTIONS}")

    def kinds(self) -> Mapping[str, str]:
        """Map words to their kinds."""
        return {name: word.kind for name, word in self.words.items()}


class AskPlace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The call that prints a file's location, and the pattern of a node in it (one group)."""

    call: tuple[str, ...]
    node: str

    def __post_init__(self) -> None:
        _check_call(self.call)
        _check_regex(self.node)


@dataclass(frozen=True, kw_only=True)
class CommandStore(Table):
    """A store with tools. `mounted`: the tools accept paths of a mounted file system."""

    commands: Mapping[str, ObjectCommand]
    mounted: bool = True
    ask_place: AskPlace | None = None

    def for_script(self) -> Self:
        """Return the store for a script that may run on any node."""
        return replace(self, late=True)

    def translate(self, hints: Mapping[str, str], kind: Kind) -> tuple[list[Setting], list[Gap]]:
        """Return one setting for each command with words for these hints, and the gaps."""
        translated, gaps = super().translate(hints, kind)
        settings = []
        for name, command in self.commands.items():
            mine = [one for one in translated if one.key in command.words]
            words = {one.key: os.fsdecode(one.value) for one in mine}
            for word, value in words.items():
                check_word(command.words[word].kind, word, value.replace(HOST, "h"))
            if mine:
                hint = ", ".join(dict.fromkeys(one.hint for one in mine))
                key = f"{self.name}:{name}"
                settings.append(Setting(key=key, value=join_words(words), hint=hint))
        return settings, gaps

    def check_key(self, key: str, *, allow_trusted: bool) -> None:
        """Accept only the table's commands."""
        self._command(key)

    def argv(self, setting: Setting, path: str) -> list[str]:
        """Return the call that makes the setting on `path`; raises InputError for a bad value."""
        command = self._command(setting.key)
        words = parse_words(setting.value, command.kinds())
        return self._fill_words(command.set, path, self.options(command, words))

    def unset_argv(self, setting: Setting, path: str) -> list[str]:
        """Return the call that unsets it; empty if the tool has none."""
        return self._fill_words(self._command(setting.key).unset, path, [])

    def options(self, command: ObjectCommand, words: Mapping[str, str]) -> list[str]:
        """Return the arguments of the words, in the order of the table."""
        return [
            part.replace("{}", words[name])
            for name, word in command.words.items()
            if name in words
            for part in word.option
        ]

    def needs_server(self) -> bool:
        """Whether a command names the store's server."""
        vectors = (v for c in self.commands.values() for v in (c.set, c.get, c.unset))
        return any(SERVER in part for vector in vectors for part in vector)

    def base_path(self) -> str:
        """Return the prefix of paths in a store without mount."""
        return self.places.base

    def creates(self, setting: Setting) -> bool:
        """Whether the call creates the file itself."""
        return self._command(setting.key).creates

    def words_in(self, command: ObjectCommand, answer: str) -> dict[str, str]:
        """Parse the words in a tool's output, sizes in bytes; invalid values are skipped."""
        found = {}
        for name, word in command.words.items():
            match = re.search(word.read, answer, re.MULTILINE) if word.read else None
            if match is None:
                continue
            meaning = word.means.get(match[1], match[1])
            size = bytes_of(meaning) if word.kind == "size" else None
            text = str(size) if size is not None else meaning
            try:
                found[name] = check_word(word.kind, name, text)
            except InputError:
                continue
        return found

    def read(self, fd: int, key: str) -> bytes | None:
        """Return the words as the tool reports them; None: none of them. Raises OSError."""
        return self._read_words(key, self._descriptor_path(fd), fd)

    def read_name(self, name: str, key: str) -> bytes | None:
        """As `read`, by a name in a store without mount. Raises OSError."""
        return self._read_words(key, self._make_path(name), None)

    def _read_words(self, key: str, path: str, fd: int | None) -> bytes | None:
        command = self._command(key)
        if not command.get:
            raise OSError(errno.ENOTSUP, f"{self.title} cannot report it")
        found = self.words_in(command, run_tool(self._fill_words(command.get, path, []), fd=fd))
        return join_words(found) if found else None

    def write(self, fd: int, key: str, value: bytes) -> None:
        """Run the tool that sets the value. Raises OSError."""
        if self._command(key).creates and stat.S_ISREG(os.fstat(fd).st_mode):
            reason = "the tool creates the file itself: only a script (emit --create) can set it"
            raise OSError(errno.EEXIST, reason)
        setting = Setting(key=key, value=value, hint="")
        run_tool(self.argv(setting, self._descriptor_path(fd)), fd=fd)

    def remove(self, fd: int, key: str) -> None:
        """Run the call that unsets it. Raises OSError, also if the tool has none."""
        argv = self.unset_argv(Setting(key=key, value=b"", hint=""), self._descriptor_path(fd))
        if not argv:
            raise OSError(errno.ENOTSUP, "it cannot be undone, only changed")
        run_tool(argv, fd=fd)

    def fits(self, setting: Setting, got: bytes | None) -> bool:
        """Whether the reported words satisfy the setting; any node's own place is local."""
        kinds = self._command(setting.key).kinds()
        if got is None:
            return False
        wanted, found = parse_words(setting.value, kinds), parse_words(got, kinds)
        if "DP=local" in setting.hint:
            wanted = {
                name: found[name]
                if kinds[name] == "name" and self.places.is_local(found.get(name, "").encode())
                else value
                for name, value in wanted.items()
            }
        return same_words(wanted, found)

    def locate(self, fd: int) -> Location | None:
        """Return the nodes of an open file; None: not reported. Raises OSError."""
        return self._parse_location(self._descriptor_path(fd), fd) if self.ask_place else None

    def locate_name(self, name: str) -> Location | None:
        """Return the nodes of a file, by its name in a store without mount. Raises OSError."""
        return self._parse_location(self._make_path(name), None)

    def _make_path(self, name: str) -> str:
        if not PLAIN_NAME.fullmatch(name):
            raise OSError(errno.EINVAL, "the tool could take its name for a pattern")
        return name if name.startswith("/") else f"{self.base_path()}/{name}"

    def _parse_location(self, path: str, fd: int | None) -> Location | None:
        if self.ask_place is None:
            return None
        answer = run_tool(self._fill_words(self.ask_place.call, path, []), fd=fd)
        nodes = Counter(re.findall(self.ask_place.node, answer))
        if not nodes:
            return None
        order = tuple(node for node, _ in nodes.most_common())
        return Location(nodes=order, detail={"copies": dict(nodes)})

    def _command(self, key: str) -> ObjectCommand:
        store, _, name = key.partition(":")
        if store != self.name or name not in self.commands:
            raise UsageError(f"{key[:80]!r} is not a setting of {self.name}", "Use its own store.")
        return self.commands[name]

    def _descriptor_path(self, fd: int) -> str:
        if not self.mounted:
            raise OSError(errno.ENOTSUP, f"{self.title} has no mount: use the script of emit")
        return fd_path(fd)

    def _fill_words(self, argv: Sequence[str], path: str, options: Sequence[str]) -> list[str]:
        out: list[str] = []
        for part in argv:
            if part == OPTIONS:
                out += options
            else:
                out.append(part.replace(PATH, path).replace(SERVER, self.places.server))
        return out
