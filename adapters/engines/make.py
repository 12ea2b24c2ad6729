"""GNU make: the database that `make -np` prints (targets, prerequisites, recipes) and the lines
of `make --debug=j` (target -> pid of each recipe line). One file may contain both.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tracehint.adapters.engines.graph_base import (
    MAX_WORD,
    DeclaredGraph,
    GraphBuilder,
    absolute,
    raw_name,
)
from tracehint.adapters.engines.unpack import read_lines
from tracehint.analyzer.tasks.describe import type_of_text

_CHILD = re.compile(
    r"(?:Putting|Live) child 0x[0-9a-f]+ \((.*)\) PID (\d{1,9})(?: on the chain\.)?\s*$"
)
_ENTER = re.compile(r"^(?:# )?\S*make(?:\[\d+\])?: (Entering|Leaving) directory '(.*)'$")
_RECIPE = re.compile(r"^#  recipe to execute")
_VARIABLE = re.compile(r"^([A-Za-z_.][\w.-]*) (:?=) (.*)$")
_REFERENCE = re.compile(r"\$(?:\(([^()$\s]+)\)|\{([^{}$\s]+)\}|([@<^*+?]))")
_SPECIAL = frozenset(
    {
        ".PHONY",
        ".SUFFIXES",
        ".DEFAULT",
        ".PRECIOUS",
        ".INTERMEDIATE",
        ".SECONDARY",
        ".ONESHELL",
        ".DELETE_ON_ERROR",
        ".NOTPARALLEL",
        ".EXPORT_ALL_VARIABLES",
    }
)
_MAX_PASSES = 16
_MAX_TEXT = 1 << 16


@dataclass
class _Target:
    """One target in make's database; `needs` and `pids` are ordered sets."""

    needs: dict[str, None] = field(default_factory=dict)
    recipe: list[str] = field(default_factory=list)
    pids: dict[int, None] = field(default_factory=dict)
    folder: str = ""


def sniff(_path: Path, head: bytes) -> bool:
    """Whether this is make's output: the database header or a line about a child."""
    return b"# Make data base, printed on" in head or bool(
        re.search(rb"Putting child 0x[0-9a-f]+ \(.*\) PID \d+ on the chain", head)
    )


def read(path: Path) -> DeclaredGraph:
    """Read the targets that have a recipe or for which a process was started."""
    return read_printed(path, path.parent)


def read_printed(path: Path, directory: Path) -> DeclaredGraph:
    """Read the output of a make that ran in this directory."""
    lines = read_lines(path)
    out = GraphBuilder("make", absolute(directory))
    targets = _read_children(lines)
    database, variables = _read_database(lines)
    base = os.fsdecode(out.cwd)
    for (folder, name), target in database.items():
        known = targets.setdefault((folder or "", name), _Target(folder=folder))
        known.needs, known.recipe = target.needs, target.recipe
    made = {name for (_, name), t in targets.items() if t.recipe or t.pids}
    for (folder, name), target in sorted(targets.items()):
        if target.recipe or target.pids:
            where = posixpath.join(base, folder)
            _add(out, name, target, where, made, variables)
    return out.graph()


def _add(
    out: GraphBuilder,
    name: str,
    target: _Target,
    where: str,
    made: set[str],
    variables: dict[str, str],
) -> None:
    automatic = {
        "@": name,
        "<": next(iter(target.needs), ""),
        "^": " ".join(target.needs),
        "+": " ".join(target.needs),
        "*": posixpath.splitext(name)[0],
    }
    command = _command(target.recipe, ChainMap(automatic, variables))
    task = posixpath.normpath(posixpath.join(where, name))
    # a row per recipe line that ran: parts of one task have the same identifier
    pids: list[int | None] = [*target.pids] or [None]
    for pid in pids:
        out.task(
            task,
            name=name,
            type=type_of_text(command),
            command=raw_name(command),
            pid=pid,
            workdir=None,
            parents=[n for n in target.needs if n in made],
        )
    if not target.needs and not target.recipe:
        return
    for need in target.needs:
        out.file(task, "in", raw_name(posixpath.join(where, need)))
    out.file(task, "out", raw_name(posixpath.join(where, name)))


def _read_children(lines: list[str]) -> dict[tuple[str, str], _Target]:
    """Return the pids of targets by (directory, name), from a recursive make's messages."""
    found: dict[tuple[str, str], _Target] = {}
    for line, folder in _add_folders(lines):
        child = _CHILD.search(line)
        if child:
            target = found.setdefault((folder, child[1]), _Target(folder=folder))
            target.pids[int(child[2])] = None
    return found


def _read_database(lines: list[str]) -> tuple[dict[tuple[str, str], _Target], dict[str, str]]:
    """Return the explicit targets and variables of all databases in the text."""
    targets: dict[tuple[str, str], _Target] = {}
    variables: dict[str, str] = {}
    inside = skip = False
    current: _Target | None = None
    in_recipe = False
    for line, folder in _add_folders(lines):
        if line.startswith("# Make data base"):
            inside = True
        elif line.startswith("# Finished Make data base"):
            inside = False
        elif not inside:
            continue
        elif line == "# Not a target:":
            skip = True
        elif not line:
            current, in_recipe = None, False
        elif _RECIPE.match(line):
            in_recipe = True
        elif line[0] == "\t" and in_recipe and current is not None:
            current.recipe.append(line[1:])
        elif line[0] not in "#\t":
            current = None if skip else _header(line, folder, targets)
            skip = False
            variable = _VARIABLE.match(line) if current is None else None
            if variable:
                variables[variable[1]] = variable[3]
    return targets, variables


def _add_folders(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each line with the directory of the (recursive) make that printed it; "": the first."""
    folders: list[str] = []
    for line in lines:
        moved = _ENTER.match(line)
        if moved and moved[1] == "Entering":
            folders.append(moved[2])
        elif moved and folders:
            folders.pop()
        yield line[:_MAX_TEXT], folders[-1] if folders else ""


def _header(line: str, folder: str, targets: dict[tuple[str, str], _Target]) -> _Target | None:
    """Parse `target: prerequisites | order-only`; None for patterns, special targets, variables."""
    name, colon, rest = line.partition(":")
    name = name.strip()
    if not colon or "=" in line.partition(":")[2][:1] or "%" in name or name in _SPECIAL:
        return None
    if re.match(r"^\.[A-Za-z0-9]+(\.[A-Za-z0-9]+)?$", name) or " " in name or "=" in name:
        return None
    needs = rest.lstrip(":").partition("|")[0].split()
    target = targets.setdefault((folder, name), _Target(folder=folder))
    target.needs.update(dict.fromkeys(needs))
    return target


def _command(recipe: list[str], variables: Mapping[str, str]) -> str:
    """Return the command lines that make would run, limited to MAX_WORD."""
    lines: list[str] = []
    room = MAX_WORD
    for line in recipe:
        if room < 0:
            break
        lines.append(_expand(line, variables).strip().lstrip("@-+ "))
        room -= len(lines[-1]) + 1
    return "\n".join(lines)


def _expand(text: str, variables: Mapping[str, str]) -> str:
    """Expand the variables in a text; functions and unknown variables stay unchanged.

    Expansion stops before the text exceeds _MAX_TEXT: variables can contain others repeatedly.
    """
    for _ in range(_MAX_PASSES):
        room = _MAX_TEXT - len(text)

        def value(found: re.Match[str]) -> str:
            nonlocal room
            put = variables.get(found[1] or found[2] or found[3], found[0])
            room -= len(put) - len(found[0])
            return put if room >= 0 else ""

        new = _REFERENCE.sub(value, text).replace("$$", "\x00")
        if new == text or room < 0:
            break
        text = new
    return text.replace("\x00", "$")
