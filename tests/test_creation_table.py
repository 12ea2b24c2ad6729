"""The compiled rule table gives the same answer for every name as the matcher in Python."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.creation import SANITIZERS, ask, build_ask, expected
from tests.support.hints import hint_file, rule
from tests.support.hostile import HOSTILE_NAMES
from tracehint.adapters.creation import table_layout
from tracehint.adapters.creation.resolution import resolution_of
from tracehint.adapters.creation.rule_table import compile_rules
from tracehint.adapters.paths import Paths, inside
from tracehint.adapters.stores.base import Store
from tracehint.adapters.stores.registry import open_store
from tracehint.errors import InputError
from tracehint.hintgen.hints.model import Conditions, Formula, Hint, Maker, Rule
from tracehint.hintgen.hints.template import HOLES, parse
from tracehint.hintgen.match.match import Declared, Matcher

pytestmark = pytest.mark.slow

LITERALS = ["a", "b", "out/", "x_", ".txt", "1", "-", "_", "tile_", "/", "é", "0"]
PIECES = [
    *LITERALS, "12", "abc", "2024-01-02", "20240102", "deadbeef", "0f", "dir/sub/", "\\", "Zz9_qQ",
    "123e4567-e89b-12d3-a456-426614174000", "a" * 70, "//",
]  # fmt: skip  # a table


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the table's reader with sanitizers."""
    return build_ask(tmp_path_factory.mktemp("ask"), *SANITIZERS)


def stores(folder: Path) -> list[Store]:
    """Return a store that writes groups as text and one that maps them to classes by checksum."""
    places = folder / "map.toml"
    places.write_text('groups = ["A", "B", "C"]\n')
    return [open_store("xattr"), open_store("moosefs", places=places)]


def random_template(rnd: random.Random) -> str:
    while True:
        count = rnd.randint(1, 6)
        text = "".join(
            rnd.choice(LITERALS) if rnd.random() < 0.5 else "{" + rnd.choice(list(HOLES)) + "}"
            for _ in range(count)
        )
        try:
            parse(text)
        except InputError:
            continue
        return text


def random_rule(rnd: random.Random, number: int) -> Rule:
    """Return a rule; some have groups from placeholders, exclusions or conditions."""
    formula = Formula(
        fn="group",
        prefix=rnd.choice(["g", "réd", ""]),
        captures=(0, 1)[: number % 3],
        letters=rnd.random() < 0.3,
    )
    hints = (
        Hint("DP", "collocation|g0", "create", formula)
        if rnd.random() < 0.5
        else Hint("DP", rnd.choice(["local", "collocation|q"]), "create"),
    )
    if rnd.random() < 0.3:
        hints += (Hint("Replication", str(rnd.randint(2, 4)), "create"),)
    exclude = (random_template(rnd),) if rnd.random() < 0.3 else ()
    conditions = Conditions(needs="use" if rnd.random() < 0.1 else "")
    return rule(
        random_template(rnd), id=f"r{number}", hints=hints, exclude=exclude, conditions=conditions
    )


def random_name(rnd: random.Random) -> bytes:
    while True:
        text = "".join(rnd.choice(PIECES) for _ in range(rnd.randint(1, 7)))
        name = text.encode() + bytes([rnd.randrange(1, 256)]) * rnd.randrange(2)
        if inside(name):
            return name


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_the_table_says_what_the_matcher_says(program: Path, tmp_path: Path, seed: int) -> None:
    rnd = random.Random(seed)
    hints = hint_file(*(random_rule(rnd, n) for n in range(1 + 60 * seed)))
    names = [*{random_name(rnd) for _ in range(1500)}, *HOSTILE_NAMES]
    resolution = resolution_of(hints, None)
    for store in stores(tmp_path):
        table = tmp_path / f"table-{store.name}"
        table.write_bytes(compile_rules(resolution, store, [b"/w"]).data)
        answers = ask(program, table, names)
        wanted = expected(resolution, store, names)
        reasons = [m.reason for m in Matcher(hints).match(names)]
        odd = [
            (name, word, reason, got, want)
            for name, (word, got), want, reason in zip(names, answers, wanted, reasons, strict=True)
            if (got or None) != want or (word == "conflict") != (reason == "conflict")
        ]
        # long runs of one letter with loose templates: the two count their steps differently
        assert len(odd) < 5
        assert all("costly" in (word, reason) for _, word, reason, _, _ in odd), odd


def test_a_known_name_goes_before_every_template(program: Path, tmp_path: Path) -> None:
    hints = hint_file(
        rule("{name}.txt", DP="local", conditions=Conditions(needs="use")),
        rule("b.{name}", DP="local"),
    )
    known = Declared(
        producer_types=["make", "make"], consumer_types=[["use"], ["other"]],
        producers=[["m#1"], ["m#2"]], consumers=[["u#1"], ["o#1"]],
    )  # fmt: skip  # a table
    paths = Paths(files=(), declared=[b"a.txt", b"b.dat"], known=known)
    resolution = resolution_of(hints, paths)
    table = tmp_path / "table"
    table.write_bytes(compile_rules(resolution, open_store("xattr"), [b"/w"]).data)
    answers = ask(program, table, [b"a.txt", b"other.txt", b"b.dat", b"b.xyz"])
    assert [word for word, _ in answers] == ["found", "no_rule", "found", "found"]
    assert answers[0][1] == {"user.DP": b"local"}


@pytest.mark.parametrize("seed", range(2))
def test_the_table_says_the_same_of_tasks_types(program: Path, tmp_path: Path, seed: int) -> None:
    rnd = random.Random(seed)
    makers = tuple(Maker(f"w{n}", f"t{n % 3}", sure=bool(n % 2)) for n in range(5))
    rules = [
        replace(random_rule(rnd, n), made_by=tuple(rnd.sample(["t0", "t1", "t2"], n % 3)))
        for n in range(120)
    ]
    hints = replace(hint_file(*rules), makers=makers)
    names = list({random_name(rnd) for _ in range(800)})
    known = Declared(
        producer_types=[rnd.choice(["t0", "t1", "t2"]) for _ in names[:200]],
        consumer_types=[["use"]] * 200,
        producers=[["p"]] * 200,
        consumers=[["c"]] * 200,
    )
    resolution = resolution_of(hints, Paths(files=(), declared=names[:200], known=known))
    table = tmp_path / "table"
    table.write_bytes(compile_rules(resolution, open_store("xattr"), [b"/w"]).data)
    for number, kind in enumerate((*hints.maker_types, None)):
        wanted = expected(resolution, open_store("xattr"), names, [kind] * len(names))
        code = table_layout.UNKNOWN if kind is None else number
        answers = ask(program, table, names, code)
        odd = [
            (name, kind, answer, want)
            for name, answer, want in zip(names, answers, wanted, strict=True)
            if (answer[1] or None) != want and answer[0] != "costly"
        ]
        assert not odd, odd[:3]
    assert len({str(ask(program, table, names, n)) for n in range(3)}) == 3  # types matter


def test_a_plan_decides_for_its_files(program: Path, tmp_path: Path) -> None:
    from tracehint.hintgen.hints.model import FilePart, Plan, PlanSeconds

    part = FilePart("x.txt", 1, {"DP": "collocation|part-1"})
    plan = Plan("c", "greedy", PlanSeconds(2.0, 1.0), parts=2, files=(part,))
    hints = replace(hint_file(rule("{name}.txt", DP="local")), plan=plan)
    table = tmp_path / "table"
    data = compile_rules(resolution_of(hints, None), open_store("xattr"), [b"/w"]).data
    table.write_bytes(data)
    answers = ask(program, table, [b"x.txt", b"y.txt"])
    assert [said["user.DP"] for _, said in answers] == [b"collocation|part-1", b"local"]


def test_a_costly_name_gets_no_hint_in_bounded_time(program: Path, tmp_path: Path) -> None:
    loose = ["{name}a{name}a" + "b" * n + "{n}" for n in range(1, 200)]
    hints = hint_file(*(rule(text, DP="local", id=f"r{n}") for n, text in enumerate(loose)))
    table = tmp_path / "table"
    data = compile_rules(resolution_of(hints, None), open_store("xattr"), [b"/w"]).data
    table.write_bytes(data)
    assert ask(program, table, [b"a" * 250 + b"x1"])[0][0] == "costly"


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_table_is_read_without_harm(program: Path, tmp_path: Path, seed: int) -> None:
    rnd = random.Random(seed)
    hints = hint_file(*(random_rule(rnd, n) for n in range(20)))
    known = Paths(files=(), declared=[b"known/%d" % n for n in range(20)], known=Declared())
    store = stores(tmp_path)[seed % 2]
    data = bytearray(compile_rules(resolution_of(hints, known), store, [b"/w"]).data)
    for _ in range(rnd.randint(1, 30)):
        at = rnd.randrange(table_layout.HEADER.size if seed % 4 else 16, len(data))
        data[at] = rnd.randrange(256)
    table = tmp_path / "table"
    table.write_bytes(data[: len(data) - rnd.randrange(2) * rnd.randrange(200)])
    ask(program, table, [random_name(rnd) for _ in range(200)])  # checked by the sanitizers


def test_the_header_and_the_placeholders_are_those_of_the_c_side() -> None:
    header = (Path(__file__).parents[1] / "collectors/preload/tag/table.h").read_text()
    assert f"#define TAG_PROBES {table_layout.MAX_PROBES}" in header
    assert f"#define TAG_MAX_VALUE {table_layout.MAX_VALUE}" in header
    fit = (Path(__file__).parents[1] / "collectors/preload/tag/fit.c").read_text()
    kinds = fit.split("enum kind {")[1].split("}")[0].replace("\n", " ").split(", ")
    assert [kind.strip().lower() for kind in kinds[1:-1]] == list(HOLES)
