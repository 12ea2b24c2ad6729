"""Stand-ins for the tools of stores: programs that log their arguments."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.cli import tracehint
from tests.support.hints import save
from tracehint.adapters.stores.commands import CommandStore
from tracehint.adapters.stores.registry import open_store
from tracehint.hintgen.hints.model import Rule

MIB = 1 << 20
MAP = (
    'local = "node_{host}"\ngroups = ["g1"]\nserver = "head:1094"\nbase = "/wf"\n'
    'copies = { 2 = "two" }\nreads_spread = true\nsites = { lyon = "1" }\n'
)
LOCAL, GROUP = {"DP": "local"}, {"DP": "collocation|sum"}
SCATTER = {"DP": "scatter|3", "BlockSize": str(MIB)}
COPIES, BLOCK = {"Replication": "3"}, {"BlockSize": "100000"}


def places(tmp_path: Path, store: str, extra: str = "") -> Path:
    path = tmp_path / "map.toml"
    text = MAP.replace("g1", "7") if store in ("beegfs7", "eos") else MAP
    path.write_text(text.replace("{host}", "h") + extra)
    return path


def tool_store(name: str, places: Path | None = None) -> CommandStore:
    store = open_store(name, places=places)
    assert isinstance(store, CommandStore)
    return store


def tool(folder: Path, name: str, body: str = "") -> None:
    """Create a program that appends its arguments to calls, each with a NUL, the last with two."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    text = '#!/bin/sh\n{ printf "%s\\0" "$PWD" "${0##*/}" "$@"; printf "\\0"; } >>"$CALLS"\n'
    path.write_text(text + body + "\n")
    path.chmod(0o755)


def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "CALLS": str(tmp_path / "calls"),
    }


def calls_of(tmp_path: Path) -> list[list[str]]:
    """Return the arguments of each call; the first is its working directory, then the program."""
    text = (tmp_path / "calls").read_bytes().decode("utf-8", "surrogateescape")
    return [call.split("\0") for call in text.split("\0\0") if call]


def emit(tmp_path: Path, store: str, rules: list[Rule], *more: str) -> Path:
    hints = save(tmp_path, *rules)
    script = tmp_path / "hints.sh"
    done = tracehint("emit", hints, "--store", store, "-o", script, "--force", *more)
    assert done.returncode == 0, done.stderr
    assert "not run" in done.stderr
    assert "not run" in script.read_text().partition("\n\n")[0]
    return script
