"""Rules by the type of the task that makes a file: names without meaning, checked by strace.

Two programs make files of the same names: one task reads each file of `pick`, several read those of
`mix`. The second run has new names, exchanged programs, and other programs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import said as tracehint
from tests.support.creation import Tagged
from tracehint.hintgen.hints.hintfile import load
from tracehint.hintgen.match.match import Matcher

pytestmark = pytest.mark.slow

LOCAL, COPIES = {"user.DP": b"local"}, {"user.Replication": b"2"}
PROGRAMS = {
    "pick": '#!/bin/sh\nhead -c 300000 /dev/zero > "$1"\n',
    "mix": f'#!{sys.executable}\nimport sys\nopen(sys.argv[1], "wb").write(b"m" * 300000)\n',
    "say": "#!/bin/sh\nhead -c 300000 /dev/zero\n",
    "shout.py": f'#!{sys.executable}\nimport sys\nsys.stdout.write("m" * 300000)\n',
    "use": '#!/bin/sh\ncat "$2" "$3" > "$1"\n',
}
# type -> command that makes a file; `>`: the shell opens it, then execs the program
MADE = {"pick": "bin/pick {}", "mix": "bin/mix {}", "say": "bin/say > {}"}
MADE |= {"shout.py": "bin/shout.py > {}", "cp": "cp d/in {}", "echo": "echo 1 > {}"}
READ = [(1, 4), (2, 4), (3, 5), (1, 5)]


def name(layout: str, number: int) -> str:
    return layout.format(number)


def script(layout: str, makers: dict[int, str]) -> str:
    """Return a shell script that makes the numbered files by these programs and reads them."""
    lines = ["mkdir -p d", "test -e d/in || head -c 300000 /dev/zero > d/in"]
    for number, maker in makers.items():
        path = name(layout, number)
        lines += [f"mkdir -p {os.path.dirname(path)}", MADE[maker].format(path)]  # noqa: PTH120
    # file 1 is read twice, but only once by name: pick's files are a pipeline with one reader each
    for at, (one, two) in enumerate(READ[:3]):
        lines.append(f"bin/use d/res_{at} {name(layout, one)} {name(layout, two)}")
    lines.append(f"bin/use d/res_3 d/res_0 {name(layout, 5)}")
    return "\n".join([*lines, "cat d/res_* > d/all", ""])


def makefile(layout: str, makers: dict[int, str]) -> str:
    """Return the same steps as recipes of make, in sequence."""
    steps = [line for line in script(layout, makers).splitlines() if line]
    rules = [f"s{n}:{f' s{n - 1}' if n else ''}\n\t{step}" for n, step in enumerate(steps)]
    return f"all: s{len(steps) - 1}\n" + "\n".join(rules) + "\n"


def prepare(folder: Path) -> Path:
    (folder / "bin").mkdir()
    for program, text in PROGRAMS.items():
        path = folder / "bin" / program
        path.write_text(text)
        path.chmod(0o755)
    return folder


def hints_of(path: Path) -> dict[str, bytes]:
    found = {n: os.getxattr(path, n) for n in os.listxattr(path)}
    return {n: v for n, v in found.items() if n in ("user.DP", "user.Replication")}


def late(log: Path, names: list[str]) -> list[str]:
    """Return the files that were written before their hint was set, according to strace."""
    text, wrong = log.read_text(errors="replace"), []
    for path in names:
        mark = re.escape(path) + ">"
        hint = re.search(r"fsetxattr\(\d+<[^>]*" + mark, text)
        first = re.search(r"\bwrite\(\d+<[^>]*" + mark, text)
        assert first is not None, f"strace saw nobody write {path}"
        if hint is None or hint.start() > first.start():
            wrong.append(path)
    return wrong


STRACE = ("strace", "-f", "-qq", "-y", "-e", "trace=write,fsetxattr", "-o", "log")


PICK, SAY = ("d/part_{}.dat", "pick", "mix"), ("d/job_{}/out", "say", "shout.py")


@pytest.mark.parametrize(
    ("engine", "layout", "one", "many"),
    [
        ("sh", *PICK),
        ("make", *SAY),
        pytest.param("make", *PICK, marks=pytest.mark.full),
        pytest.param("sh", *SAY, marks=pytest.mark.full),
    ],
)
def test_only_the_type_tells(tmp_path: Path, engine: str, layout: str, one: str, many: str) -> None:
    folder = prepare(tmp_path)
    words = ("sh", "run.sh") if engine == "sh" else ("make", "-s", "-f", "run.sh")
    text = script if engine == "sh" else makefile
    makers = {1: one, 2: one, 3: one, 4: many, 5: many}
    (folder / "run.sh").write_text(text(layout, makers))
    tracehint(folder, "record", "--collector", "strace", "-o", "first.trace", "--", *words)
    tracehint(folder, "hints", "first.trace", "-o", "hints.json")
    rules = [rule for rule in load(folder / "hints.json").rules if rule.made_by]
    assert {rule.made_by: rule.pattern for rule in rules} == {
        (one,): "pipeline",
        (many,): "broadcast",
    }
    subprocess.run(["rm", "-r", "d"], cwd=folder, check=True)
    # new names, exchanged programs, and unknown programs that make such a file
    makers |= {2: many, 4: one, 17: one, 18: many, 19: "cp", 20: "echo", 3: "cp"}
    (folder / "run.sh").write_text(text(layout, makers))
    said = tracehint(
        folder, "run", "--hints", "hints.json", "--like", "first.trace", "--store", "xattr",
        "--collector", "preload", "-o", "second.trace", "--", *STRACE, *words,
    )  # fmt: skip  # a table
    wanted = dict.fromkeys((1, 4, 17), LOCAL) | dict.fromkeys((2, 5, 18), COPIES)
    wanted |= {number: {} for number in (3, 19, 20)}
    got = {number: hints_of(folder / name(layout, number)) for number in wanted}
    assert got == wanted, said
    hinted = [name(layout, number) for number in wanted if wanted[number]]
    assert not late(folder / "log", hinted)
    assert "a rule needs the type of the creating task, which was unknown" in said
    data = json.loads(
        tracehint(folder, "compare", "first.trace", "second.trace", "--format", "json")
    )["hints"]
    assert data["in_force"] == data["wanted"] - data["impossible"] >= 6, data
    assert [reason for reason in data["reasons"] if "type of the task" in str(reason)], data


def test_a_store_that_only_sees_names_says_why_not(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    makers = {1: "pick", 2: "pick", 3: "pick", 4: "mix", 5: "mix"}
    (folder / "run.sh").write_text(script("d/part_{}.dat", makers))
    tracehint(folder, "record", "--collector", "strace", "-o", "r.trace", "--", "sh", "run.sh")
    tracehint(folder, "hints", "r.trace", "-o", "hints.json")
    said = tracehint(folder, "hints", "hints.json", "--explain", "d/part_9.dat")
    assert "made by a task of type mix" in said
    assert Matcher(load(folder / "hints.json")).match([b"d/part_9.dat"])[0].rule is None
    applied = tracehint(folder, "apply", "hints.json", "--store", "xattr", "--as-root", ".")
    assert not os.listxattr(folder / "d/part_1.dat")
    assert "5 files without a hint: the name does not show the producing task" in applied


def test_a_program_is_asked_once_and_its_children_are_its_own(
    library: Path, tmp_path: Path
) -> None:
    """`mix` starts `cp` and `pick`: their files belong to a task of type mix."""
    from dataclasses import replace

    from tests.support.hints import hint_file, rule
    from tracehint.hintgen.hints.model import Conditions, Maker

    prepare(tmp_path)
    makers = (Maker("pick", "pick", sure=True), Maker("outer.sh", "mix", sure=True))
    rules = [
        rule("{name}.dat", id=kind, DP=value, conditions=Conditions(needs="types"), made_by=(kind,))
        for kind, value in (("pick", "local"), ("mix", "collocation|m"))
    ]
    tagged = Tagged(library, tmp_path, replace(hint_file(*rules), makers=makers))
    outer = tmp_path / "outer.sh"
    outer.write_text("../bin/pick a.dat; cp a.dat b.dat; echo 1 > c.dat; (echo 2 > d.dat)\n")
    tagged.run("sh", outer)
    for path in ("a.dat", "b.dat", "c.dat", "d.dat"):
        assert tagged.hints(path) == {"user.DP": b"collocation|m"}, path
    tagged.run("sh", "-c", "../bin/pick e.dat; cp e.dat f.dat; env -i /bin/sh ../bin/pick g.dat")
    assert tagged.hints("e.dat") == tagged.hints("g.dat") == {"user.DP": b"local"}
    assert not tagged.hints("f.dat")
