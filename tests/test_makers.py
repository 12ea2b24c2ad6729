"""Programs that identify task types: damaged process trees, and runs without any program."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tests.support.creation import SANITIZERS, build_ask
from tracehint.analyzer.tasks.producing_programs import makers_of
from tracehint.analyzer.tasks.tree import build_tree
from tracehint.schemas.commandline.programs import MOST_BYTES, process_word

ARGV = ([], [b""], [b"\xff"], [b"sh", b"-c", b"x"], [b"python3", b"a.py"], [b"x/mix"], [b"python3"])


def column(rnd: random.Random, count: int, some: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([rnd.choice(some) for _ in range(count)], kind)


def found(rnd: random.Random, argvs: tuple[list[bytes], ...]) -> tuple[dict[str, Any], ...]:
    """Return the makers of a random tree with cycles and dangling links."""
    count, whole = rnd.randrange(1, 40), pa.int64()
    ids = [rnd.randrange(1, count + 3) for _ in range(count)]
    processes = pa.table({
        "proc": pa.array(ids, whole), "parent": column(rnd, count, [None, *ids], whole),
        "prev": column(rnd, count, [None, *ids], whole),
        "start_ns": column(rnd, count, list(range(9)), whole), "end_ns": pa.nulls(count, whole),
        "argv": column(rnd, count, list(argvs), pa.list_(pa.binary())),
    })  # fmt: skip  # a table
    tasks = list(range(rnd.randrange(1, 6)))
    segmented: Any = SimpleNamespace(
        tasks=pa.table({
            "task": pa.array(tasks, whole),
            "type": column(rnd, len(tasks), [None, "", "a", "b"], pa.string()),
            "engine": column(rnd, len(tasks), [None, True, False], pa.bool_()),
        }),
        proc_task=pa.table({
            "proc": pa.array(ids, whole), "task": column(rnd, count, [*tasks, 99], whole),
        }),
    )  # fmt: skip  # a table
    rows = rnd.randrange(20)
    opens = pa.table({
        "proc": column(rnd, rows, [*ids, 77], whole), "file": pa.array(range(rows), whole),
        "created": column(rnd, rows, [True, False], pa.bool_()),
        "via": column(rnd, rows, ["open", "inherited"], pa.string()),
        "write_ops": column(rnd, rows, [0, 1, -1], whole),
    })  # fmt: skip  # a table
    bundle: Any = SimpleNamespace(tables={"processes": processes, "opens": opens})
    return makers_of(bundle, build_tree(processes), segmented)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_trees(seed: int) -> None:
    rnd = random.Random(seed)
    for _ in range(10):
        for one in found(rnd, ARGV):
            assert one["type"] in ("a", "b")
            assert one["word"] in ("a.py", "mix")


def test_a_run_of_nothing_but_shell_texts() -> None:
    assert found(random.Random(1), ([], [b"sh", b"-c", b"x"])) == ()


# -- The word that names a process: the analysis and the preload library agree


WORDS = {
    "/usr/bin/mix a b": "mix",
    "./mix.sh a": "mix.sh",
    "/bin/sh ./mix.sh a": "mix.sh",
    "bash -eu bin/mix.sh": "mix.sh",
    "bash -euo pipefail bin/mix.sh": "mix.sh",
    "sh -c text": "",
    "-bash": "",
    "/usr/bin/python3.11 -u bin/mix.py 7": "mix.py",
    "python3 -W ignore -X dev mix.py": "mix.py",
    "python3 -m pkg.mix 3": "pkg.mix",
    "python3 -c text mix.py": "",
    "python3": "",
    "perl -I lib mix.pl": "mix.pl",
    "perl -ne text x": "",
    "java -Xmx1g -cp a.jar:b.jar org.Mix x": "org.Mix",
    "java -jar lib/mix.jar x": "mix.jar",
    "Rscript --vanilla mix.R": "mix.R",
    "dir/": "",
    "": "",
}


@pytest.mark.parametrize("line", WORDS)
def test_programs_and_scripts_are_known(line: str) -> None:
    assert process_word(line.encode().split(b" ")) == WORDS[line].encode()


def test_what_is_cut_is_not_guessed() -> None:
    assert process_word([b"python3", b"-W", b"x" * MOST_BYTES, b"mix.py"]) == b""
    assert process_word([b"x" * 300]) == b""
    assert process_word([]) == b""


def random_line(rnd: random.Random) -> list[bytes]:
    some = """sh bash python3 python3.11- perl5 java node -c -m -W -I -jar -euo -o +o -- - -p -cp
        mix.py a/b/mix /x/ -x text pkg.mix -ec -uc -Mre -ne -Ilibe octave R é""".encode().split()
    words = [rnd.choice(some) for _ in range(rnd.randrange(8))]
    return words + [b""] * rnd.randrange(2) + [b"y" * rnd.choice([1, 300, 5000])] * rnd.randrange(2)


@pytest.mark.slow
def test_the_library_says_the_same(tmp_path: Path) -> None:
    rnd = random.Random(16)
    lines = [random_line(rnd) for _ in range(20_000)]
    lines += [line.encode().split(b" ") for line in WORDS]
    given = "\n".join(b"".join(w + b"\0" for w in line)[:MOST_BYTES].hex() for line in lines)
    program = build_ask(tmp_path, *SANITIZERS)
    done = subprocess.run([program, "word"], input=given + "\n", capture_output=True, text=True)
    assert not done.stderr, done.stderr
    said = [bytes.fromhex(line) for line in done.stdout.splitlines()]
    wanted = [process_word(line) for line in lines]
    assert len(said) == len(wanted)
    odd = [(line, w, s) for line, w, s in zip(lines, wanted, said, strict=True) if w != s]
    assert not odd, odd[:5]
