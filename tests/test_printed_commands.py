"""Every command line that a command prints is valid, for a workflow of each engine, before and
after `init`."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.engines import engine

pytestmark = [pytest.mark.slow, pytest.mark.engine]

PRINTED = re.compile(r"(?:^\s*|: )(?:next:?\s+)?(tracehint [a-z].*?)\s*$", re.IGNORECASE)
SIZE = 64 << 20  # read by three tasks each, so that rules are learned
PART = "cat big.dat | tail -c 9 > part_{}.txt"
TOTAL = "cat part_1.txt part_2.txt part_3.txt > total.txt"
RULES = "".join(f"part_{n}.txt: big.dat\n\t{PART.format(n)}\n" for n in (1, 2, 3))
RULES = f"total.txt: part_1.txt part_2.txt part_3.txt\n\t{TOTAL}\n{RULES}"
SNAKEFILE = f"""
rule total:
    input: expand("part_{{n}}.txt", n=[1, 2, 3])
    output: "total.txt"
    shell: "{TOTAL}"
rule part:
    input: "big.dat"
    output: "part_{{n}}.txt"
    shell: "cat {{input}} | tail -c 9 > {{output}}"
"""
NEXTFLOW = """
process PART {
    input: tuple val(n), path(seed)
    output: path "part_${n}.txt"
    script: "cat ${seed} | tail -c 9 > part_${n}.txt"
}
workflow { PART(channel.of(1, 2, 3).map { [it, file('big.dat')] }) }
"""
TOOL = {
    "class": "CommandLineTool", "baseCommand": ["sh", "-c", 'cat "$0" | tail -c 9'],
    "inputs": {"big": {"type": "File", "inputBinding": {"position": 1}}, "name": "string"},
    "outputs": {"out": "stdout"}, "stdout": "$(inputs.name)",
}  # fmt: skip  # a table
CWL = {
    "cwlVersion": "v1.2", "class": "Workflow",
    "requirements": {"ScatterFeatureRequirement": {}},
    "inputs": {"big": "File", "names": "string[]"},
    "outputs": {"parts": {"type": "File[]", "outputSource": "part/out"}},
    "steps": {"part": {"run": TOOL, "scatter": "name", "out": ["out"],
                       "in": {"big": "big", "name": "names"}}},
}  # fmt: skip  # a table
JOB = {"big": {"class": "File", "path": "big.dat"}, "names": ["part_1.txt", "part_2.txt", "p_3"]}


def installed(name: str) -> str:
    """Return the path of a program next to this Python or on PATH."""
    own = Path(sys.executable).parent / name
    return str(own) if own.exists() else shutil.which(name) or pytest.skip(f"no {name}")


def fetched(name: str) -> str:
    return str(engine(name))


# engine: its files, the lookup of its program, its command
ENGINES: dict[str, tuple[dict[str, str], Callable[[str], str], tuple[str, ...]]] = {
    "make": ({"Makefile": RULES}, installed, ("make", "-B")),
    "makeflow": ({"w.makeflow": RULES}, installed, ("makeflow", "-j", "2", "w.makeflow")),
    "snakemake": (
        {"Snakefile": SNAKEFILE}, installed, ("snakemake", "-c2", "--quiet", "all", "--forceall"),
    ),
    "nextflow": ({"main.nf": NEXTFLOW}, fetched, ("nextflow", "run", "main.nf")),
    "cwltool": (
        {"w.cwl": json.dumps(CWL), "job.json": json.dumps(JOB)}, fetched,
        ("cwltool", "--quiet", "w.cwl", "job.json"),
    ),
}  # fmt: skip  # a table


class Typist:
    """Types commands and, once each, the commands that they print."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder, self.env = folder, env
        self.typed: dict[str, int] = {}

    def type(self, line: str) -> None:
        """Run a line, then the commands that its last command prints."""
        self.typed[line] = 0
        printed: list[str] = []
        for part in line.split(" && "):
            words = shlex.split(part)
            assert words[0] == "tracehint"
            if words[1] == "run":
                self.forget_results()
            done = tracehint(*words[1:], cwd=self.folder, env=self.env)
            text = done.stdout + done.stderr
            accepted = (0, 1) if words[1] == "lint" else (0,)
            assert done.returncode in accepted, (line, text)
            printed = [found[1] for one in text.splitlines() if (found := PRINTED.search(one))]
        for command in printed:
            if command not in self.typed and "COMMAND" not in command:
                self.type(command)

    def forget_results(self) -> None:
        """Remove the results, so that the engine has work to do."""
        for path in (*self.folder.glob("*.txt"), *self.folder.glob("*.makeflowlog")):
            path.unlink()


# Their output differs from the others' only in the engine's own words.
FULL = ("makeflow", "nextflow", "cwltool")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.full] * (n in FULL)) for n in ENGINES]
)
def test_what_is_printed_can_be_typed(name: str, tmp_path: Path) -> None:
    files, find, command = ENGINES[name]
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / name).symlink_to(find(name))
    folder = tmp_path / "w"
    folder.mkdir()
    for file, text in files.items():
        (folder / file).write_text(text)
    with (folder / "big.dat").open("wb") as big:
        big.truncate(SIZE)
    path = f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin"
    env = {"PATH": path, "BROWSER": "true", "COLUMNS": "200", "NXF_ANSI_LOG": "false"}
    line = shlex.join(command)
    before = Typist(folder, env)
    before.type(f"tracehint profile --collector strace -- {line}")
    before.type("tracehint hints -o own.json")  # lint may have written hints.json
    before.type("tracehint lint")
    after = Typist(folder, env)
    after.type("tracehint init")
    after.type("tracehint hints -o hints.json --force")
    assert len(before.typed) > 4 and len(after.typed) > 2
