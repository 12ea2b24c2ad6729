"""Swift/K policy files and Swift/T locations, checked against a grammar in this file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.hints import hint_file, literal, rule, save
from tests.support.hostile import HOSTILE_NAMES
from tracehint.adapters.engines.swift.k import java_regex, policy_file
from tracehint.adapters.engines.swift.t import module
from tracehint.cli import main
from tracehint.hintgen.hints.template import parse

RULES = (
    rule("raw/tile_{n}.fits", producer=None, pattern="stage_in", DP="local"),
    rule("cat.tbl", pattern="broadcast", Replication=3),
    rule("proj/p_{n}.fits", pattern="pipeline", DP="local", examples=("proj/p_7.fits",)),
    rule("mosaic/{word}.fits", pattern="gather", BlockSize=65536, consumers=()),
    rule("fit_{n}.txt", pattern="reduce", DP="collocation|fit"),
    rule("field.bin", pattern="scatter", DP="scatter|4"),
)

# policy -> check of its arguments
ARGUMENTS: dict[str, Callable[[list[str]], bool]] = {
    "DEFAULT": lambda a: not a,
    "DIRECT": lambda a: len(a) == 1 and a[0].startswith("/"),
    "BROADCAST": lambda a: len(a) == 1 and a[0].startswith("/"),
    "LOCAL": lambda a: len(a) >= 2 and a[0] in ("cp", "dd"),
    "GATHER": lambda a: not a,
}
PROPERTIES = {"GATHER_LIMIT": r"\d+", "GATHER_DIR": r"/\S*", "GATHER_TARGET": r"/\S*"}


def check_policies(text: str) -> list[tuple[re.Pattern[str], str]]:
    """Parse a policy file strictly and return its rules in order; any other line fails the test."""
    rules = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            assert not set(line) & {"\r", "\x1b"}
            continue
        word, *fields = line.split(" ")
        if word == "property":
            assert re.fullmatch(PROPERTIES[fields[0]], fields[1])
            assert len(fields) == 2
            continue
        assert word == "rule", line
        pattern, policy, *arguments = fields
        assert ARGUMENTS[policy](arguments), line
        rules.append((re.compile(pattern), policy))
    assert rules[-1][0].pattern == ".*"
    assert rules[-1][1] == "DEFAULT"
    return rules


def policy_of(text: str, path: str) -> str:
    """Return the policy of the first rule that matches the whole path."""
    return next(policy for pattern, policy in check_policies(text) if pattern.fullmatch(path))


@pytest.mark.parametrize(
    ("path", "policy"),
    [
        ("raw/tile_1.fits", "LOCAL"),
        ("cat.tbl", "BROADCAST"),
        ("proj/p_12.fits", "DIRECT"),
        ("/work/run3/proj/p_12.fits", "DIRECT"),
        ("mosaic/red.fits", "GATHER"),
        ("fit_3.txt", "DEFAULT"),
        ("field.bin", "DEFAULT"),
        ("xcat.tbl", "DEFAULT"),
        ("cat_tbl", "DEFAULT"),
        ("proj/p_x.fits", "DEFAULT"),
    ],
)
def test_every_pattern_has_its_policy(path: str, policy: str) -> None:
    text, _ = policy_file(hint_file(*RULES), local="/dev/shm", shared="/pfs/data")
    assert policy_of(text, path) == policy


def test_what_cannot_be_said_is_named() -> None:
    text, gaps = policy_file(hint_file(*RULES), local="/dev/shm", shared="/pfs")
    assert {gap.hint for gap in gaps} == {"reduce", "scatter"}
    assert "archives" in text, "GATHER would hide files from later tasks"


def test_the_more_specific_rule_comes_first() -> None:
    text, _ = policy_file(
        hint_file(
            rule("{name}.dat", pattern="broadcast", Replication=2),
            rule("p_{n}.dat", pattern="pipeline", DP="local"),
        ),
        local="/dev/shm",
        shared="/pfs",
    )
    assert policy_of(text, "p_3.dat") == "DIRECT"
    assert policy_of(text, "q.dat") == "BROADCAST"


def test_excluded_files_are_left_to_the_default() -> None:
    one = rule("p_{name}.dat", pattern="pipeline", DP="local", exclude=("p_{n}.dat",))
    text, _ = policy_file(hint_file(one), local="/dev/shm", shared="/pfs")
    assert policy_of(text, "p_x.dat") == "DIRECT"
    assert policy_of(text, "p_3.dat") == "DEFAULT"
    assert policy_of(text, "a/p_3.dat") == "DEFAULT"


def test_hostile_names_cannot_leave_their_field() -> None:
    rules = [
        literal(name, pattern="pipeline", DP="local", id=f"r{i}\n$(x)")
        for i, name in enumerate(HOSTILE_NAMES)
    ]
    text, gaps = policy_file(hint_file(*rules), local="/dev/shm", shared="/pfs")
    assert text.isascii()
    assert not set(text) - {"\n", *map(chr, range(32, 127))}
    check_policies(text)
    said = 0
    for name in HOSTILE_NAMES:
        pattern = java_regex(parse(rules[HOSTILE_NAMES.index(name)].template))
        if pattern is not None:
            said += 1
            python = re.sub(r"(\\ud[89ab]..)(\\ud[c-f]..)", _astral, pattern)
            assert re.fullmatch(python, name.decode()), name
    assert said + len(gaps) == len(HOSTILE_NAMES)


def _astral(found: re.Match[str]) -> str:
    """Convert a pair of Java code units to the one character that Python's `re` expects."""
    high, low = (int(code[2:], 16) for code in found.groups())
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


@pytest.mark.parametrize("place", ["relative", "/a b", "/x;y", "/x\ny", "/$(id)"])
def test_directories_are_checked(tmp_path: Path, place: str) -> None:
    hints = save(tmp_path, *RULES)
    command = ["emit", str(hints), "--workflow-engine", "swift-k", f"--shared-dir={place}"]
    assert main(command) == 2


TOKEN = re.compile(r'\s+|//[^\n]*|"(?:[^"\\\n]|\\["\\])*"|[A-Za-z_][A-Za-z0-9_]*|[(){}\[\],;=]')


def check_swift_t(text: str) -> list[str]:
    """Split strictly into tokens with matching brackets; return them without comments."""
    tokens = []
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        assert found, f"no token at {text[at : at + 40]!r}"
        at = found.end()
        if not found[0].isspace() and not found[0].startswith("//"):
            tokens.append(found[0])
    stack = []
    for token in tokens:
        if token in "([{" and len(token) == 1:
            stack.append({"(": ")", "[": "]", "{": "}"}[token])
        elif token in (")", "]", "}"):
            assert stack.pop() == token
    assert not stack
    return tokens


def test_locations_for_swift_t() -> None:
    text, gaps = module(hint_file(*RULES), {"proj/p_7.fits": "node07"})
    tokens = check_swift_t(text)
    assert tokens[:3] == ["import", "location", ";"]
    assert {"SOFT", "HARD", "NODE", "hostmapOneWorkerRank"} <= set(tokens)
    assert '@location=tracehint_soft(tracehint_host["proj/p_7.fits"]) use(...);' in text
    assert {gap.hint for gap in gaps} == {"broadcast", "gather"}


def test_hostile_names_in_swift_t() -> None:
    rules = [
        literal(name, pattern="pipeline", DP="local", id=f"r{i}", consumers=(repr(name), "a\nb"))
        for i, name in enumerate(HOSTILE_NAMES)
    ]
    hosts = {name.decode("utf-8", "surrogateescape"): 'h\n"; }' for name in HOSTILE_NAMES}
    text, _ = module(hint_file(*rules), hosts)
    clean, _ = module(hint_file(), {"x": "y"})
    strings = [t for t in check_swift_t(text) if not t.startswith('"')]
    assert set(strings) == {t for t in check_swift_t(clean) if not t.startswith('"')}
    assert not set(text) - {"\n", *map(chr, range(32, 127))}


def test_both_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    located = {
        "schema": "tracehint.locate/1",
        "files": [{"path": "proj/p_7.fits", "nodes": ["n1", "n2"]}, {"path": "x", "nodes": []}],
    }
    (tmp_path / "where.json").write_text(json.dumps(located))
    hints = save(tmp_path, *RULES)
    command = ["emit", str(hints), "--workflow-engine", "swift", "-o", "fs.data"]
    assert main([*command, "--locations", "where.json"]) == 0
    check_policies((tmp_path / "fs.data").read_text())
    assert '"n1"' in (tmp_path / "fs.data.swift").read_text()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"files": 3}', '{"files": [3]}', "[" * 9999])
def test_a_wrong_locations_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "where.json").write_text(content)
    hints = save(tmp_path, *RULES)
    command = ["emit", str(hints), "--workflow-engine", "swift-t"]
    assert main([*command, "--locations", str(tmp_path / "where.json")]) == 2
