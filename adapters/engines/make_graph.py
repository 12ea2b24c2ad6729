"""GNU make: the data base that `make -np` prints (targets, prerequisites, recipes) and the lines
of `make --debug=j` (target -> pid of each recipe line). One file may hold both.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    folder_of,
    raw_name,
    read_text,
)
from tracehint.analyzer.tasks.describe import type_of_text

_CHILD = re.compile(
    r"(?:Putting|Live) child 0x[0-9a-f]+ \((.*)\) PID (\d{1,9})(?: on the chain\.)?\s*$"
)
_ENTER = re.compile(r"^\S*make(?:\[\d+\])?: (Entering|Leaving) directory '(.*)'$")
_RECIPE = re.compile(r"^#  recipe to execute")
_VARIABLE = re.compile(r"^([A-Za-z_.][\w.-]*) (:?=) (.*)$")
_REFERENCE = re.compile(r"\$(?:\(([^()$\s]+)\)|\{([^{}$\s]+)\}|([@<^*+?]))")
_SPECIAL = frozenset(
    {".PHONY", ".SUFFIXES", ".DEFAULT", ".PRECIOUS", ".INTERMEDIATE", ".SECONDARY", ".ONESHELL",
     ".DELETE_ON_ERROR", ".NOTPARALLEL", ".EXPORT_ALL_VARIABLES"}
)  # fmt: skip
_DEPTH = 16
_LENGTH = 1 << 16


@dataclass
class _Target:
    """What make knows of a target."""

    needs: list[str] = field(default_factory=list)
    recipe: list[str] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)
    folder: str = ""


def sniff(_path: Path, head: bytes) -> bool:
    """Make's own text: the data base's header or a line about a child."""
    return b"# Make data base, printed on" in head or bool(
        re.search(rb"Putting child 0x[0-9a-f]+ \(.*\) PID \d+ on the chain", head)
    )


def read(path: Path) -> DeclaredGraph:
    """The targets that have a recipe, or that a process was started for."""
    lines = read_text(path).split("\n")
    out = GraphBuilder("make", folder_of(path))
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
    out: GraphBuilder, name: str, target: _Target, where: str, made: set[str],
    variables: dict[str, str],
) -> None:  # fmt: skip
    automatic = {"@": name, "<": next(iter(target.needs), ""), "^": " ".join(target.needs),
                 "+": " ".join(target.needs), "*": posixpath.splitext(name)[0]}  # fmt: skip
    lines = [_expand(line, variables | automatic).strip() for line in target.recipe]
    command = "\n".join(line.lstrip("@-+ ") for line in lines)
    task = posixpath.normpath(posixpath.join(where, name))
    # a row per recipe line that ran: parts of one task have the same identifier
    pids: list[int | None] = [*target.pids] or [None]
    for pid in pids:
        out.task(
            task, name=name, type=type_of_text(command), command=raw_name(command), pid=pid,
            workdir=None, parents=[n for n in target.needs if n in made],
        )  # fmt: skip
    if not target.needs and not target.recipe:
        return
    for need in dict.fromkeys(target.needs):
        out.file(task, "in", raw_name(posixpath.join(where, need)))
    out.file(task, "out", raw_name(posixpath.join(where, name)))


def _read_children(lines: list[str]) -> dict[tuple[str, str], _Target]:
    """The pids of each target, by directory: a recursive make says where it enters."""
    found: dict[tuple[str, str], _Target] = {}
    folders: list[str] = []
    for line in lines:
        entered = _ENTER.match(line)
        if entered and entered[1] == "Entering":
            folders.append(entered[2])
        elif entered and folders:
            folders.pop()
        child = _CHILD.search(line)
        if child:
            folder = folders[-1] if folders else ""
            target = found.setdefault((folder, child[1]), _Target(folder=folder))
            if int(child[2]) not in target.pids:
                target.pids.append(int(child[2]))
    return found


def _read_database(
    lines: list[str],
) -> tuple[dict[tuple[str, str], _Target], dict[str, str]]:
    """Explicit targets and variables of each data base in the text."""
    targets: dict[tuple[str, str], _Target] = {}
    variables: dict[str, str] = {}
    folder = ""
    inside = skip = False
    current: _Target | None = None
    in_recipe = False
    for line in _limited(lines):
        entered = _ENTER.match(line)
        if entered:
            folder = entered[2] if entered[1] == "Entering" else ""
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


def _limited(lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield line[:_LENGTH]


def _header(line: str, folder: str, targets: dict[tuple[str, str], _Target]) -> _Target | None:
    """`target: prerequisites | order-only`; None for pattern rules, special targets, variables."""
    name, colon, rest = line.partition(":")
    name = name.strip()
    if not colon or "=" in line.partition(":")[2][:1] or "%" in name or name in _SPECIAL:
        return None
    if re.match(r"^\.[A-Za-z0-9]+(\.[A-Za-z0-9]+)?$", name) or " " in name or "=" in name:
        return None
    needs = rest.lstrip(":").partition("|")[0].split()
    target = targets.setdefault((folder, name), _Target(folder=folder))
    target.needs = list(dict.fromkeys([*target.needs, *needs]))
    return target


def _expand(text: str, variables: dict[str, str]) -> str:
    """The text with variables put in; functions and unknown ones stay as they are."""
    for _ in range(_DEPTH):
        new = _REFERENCE.sub(lambda m: variables.get(m[1] or m[2] or m[3], m[0]), text).replace(
            "$$", "\x00"
        )
        if new == text or len(new) > _LENGTH:
            break
        text = new
    return text.replace("\x00", "$")
