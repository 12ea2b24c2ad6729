"""A new file's name from the path that created it (collectors/preload/tag/name.c), with
sanitizers: the kernel's own name for the file, or nothing."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from tests.support.built import built
from tests.support.creation import SANITIZERS, SOURCES
from tests.support.hints import hint_file, rule
from tests.support.hostile import HOSTILE_NAMES
from tracehint.adapters.creation.resolution import resolution_of
from tracehint.adapters.creation.rule_table import compile_rules
from tracehint.adapters.stores.registry import open_store

PARTS = [b"d", b"way", b"far", b"f", b"g", b"nothing", b".", b"..", b"", b".f", b"..f", b"\xff"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile tests/preload/names.c and the sources that it tests."""
    sources = [SOURCES / "tag" / f"{name}.c" for name in ("name", "table", "fit", "value", "word")]
    flags = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", *SANITIZERS, "-I", SOURCES)
    names = SOURCES.parents[1] / "tests" / "preload" / "names.c"
    return built(tmp_path_factory.mktemp("names") / "names", "gcc", *flags, names, *sources)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory that contains symbolic links and is reachable through one."""
    place = tmp_path / "real" / "w"
    (place / "d" / "d" / "d").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (place / "way").symlink_to("d")
    (place / "far").symlink_to(tmp_path)
    (place / "d" / "g").symlink_to("../f")
    (tmp_path / "table").write_bytes(
        compile_rules(
            resolution_of(hint_file(rule("{name}", DP="local")), None),
            open_store("xattr"),
            [os.fsencode(place)],
        ).data
    )
    return place


def told(program: Path, root: Path, names: list[bytes]) -> list[bytes]:
    """Return the name that the program derives for each path, relative to `root`."""
    done = subprocess.run(
        [program, root.parents[1] / "table"], cwd=root, capture_output=True,
        input=b"".join(name + b"\0" for name in names),
    )  # fmt: skip  # a table
    assert done.returncode == 0 and not done.stderr, done.stderr.decode(errors="replace")
    return [bytes.fromhex(line) for line in done.stdout.decode().split("\n")[:-1]]


def true_name(root: Path, name: bytes) -> bytes | None:
    """Create the file and return the kernel's name for it, or None if it cannot be created."""
    whole = os.path.join(os.fsencode(root), name)  # noqa: PTH118
    try:
        fd = os.open(whole, os.O_CREAT | os.O_WRONLY, 0o600)
    except OSError:
        return None
    try:
        return os.readlink(f"/proc/self/fd/{fd}".encode())  # noqa: PTH115 (bytes)
    finally:
        os.close(fd)


@pytest.mark.slow
def test_a_name_is_the_true_one_or_none(program: Path, root: Path) -> None:
    rnd = random.Random(7)
    heads = [b"", b"./", os.fsencode(root) + b"/", os.fsencode(root.parents[1]) + b"/link/w/", b"/"]
    names = [
        rnd.choice(heads) + b"/".join(rnd.choices(PARTS, k=rnd.randint(1, 4))) for _ in range(400)
    ]
    found = 0
    for name in names:
        true = true_name(root, name)
        (said,) = told(program, root, [name]) if true else (b"",)
        assert said in (b"", true), (name, said, true)
        found += bool(said)
    assert found > 10


@pytest.mark.slow
def test_usual_names_are_told(program: Path, root: Path) -> None:
    whole = os.fsencode(root)
    usual = [b"f", b"d/f", b"./f", b"./d/f", whole + b"/f", whole + b"/d/f", b".f", b"f..", b"f."]
    for name in usual:
        true_name(root, name)
    wanted = [whole + b"/" + name.removeprefix(whole + b"/").removeprefix(b"./") for name in usual]
    assert told(program, root, usual) == wanted
    hidden = [
        b"d/d/f",
        b"way/f",
        b"/f",
        b"",
        b"/",
        whole,
        whole + b"/",
        b"x" * 5000,
        b"../f",
        b"..",
    ]
    assert told(program, root, hidden) == [b""] * len(hidden)


def test_names_of_every_byte(program: Path, root: Path) -> None:
    names = [n for n in HOSTILE_NAMES if len(n) < 256 and b"/" not in n and n not in (b".", b"..")]
    made = [b"" if n.startswith(b"..") else true_name(root, n) for n in names]
    assert told(program, root, names) == made


def test_a_directory_that_is_gone_has_no_name(program: Path, root: Path) -> None:
    (root / "d/d/d").rmdir()
    script = f"mkdir gone && cd gone && rmdir ../gone && printf 'f\\0' | {program} $1"
    done = subprocess.run(
        ["sh", "-c", script, "sh", root.parents[1] / "table"], cwd=root, capture_output=True
    )
    assert done.stdout == b"\n"
