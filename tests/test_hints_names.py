"""What all names of a run show together: companions, readers, groups."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.flows import Flowing
from tests.support.hints import fitted_names, hint_file, parsed, rule
from tests.support.learning import BIG, learned
from tracehint.adapters.engines.makeflow.emit import targets_by_task
from tracehint.adapters.engines.makeflow.workflow import read_workflow
from tracehint.cli import main
from tracehint.errors import InputError
from tracehint.hintgen.compare.score import score_prepared
from tracehint.hintgen.hint_columns import prepare
from tracehint.hintgen.hints.hintfile import dump, to_json
from tracehint.hintgen.hints.model import Conditions, Formula, Hint, HintFile, Rule
from tracehint.hintgen.hints.template import HOLES, parse
from tracehint.hintgen.learn.facts import find_agreed
from tracehint.hintgen.learn.fallback import by_family
from tracehint.hintgen.match.match import Declared, Match, Matcher
from tracehint.hintgen.match.ruleindex import Skeletons, TemplateIndex, skeleton_of

COLOURS = ("red", "blue", "green")


def survey(images: list[str], fits: int = 2) -> Flowing:
    """Per image: p<image> from <image>; p is read by `fits` tasks; c<image>; one add per colour."""
    run = Flowing()
    table = "sky.tbl"
    adds = {name.split("-")[0]: run.task("add") for name in images}
    for name in images:
        proj, back = run.task("proj"), run.task("back")
        run.read(proj, table, BIG)
        run.read(proj, f"{name}.fits", BIG)
        run.write(proj, f"p{name}.fits", BIG)
        for k in range(fits):
            fit = run.task("fit")
            run.read(fit, f"p{name}.fits", BIG)
            run.write(fit, f"fit-{name}.{k}.txt", BIG)
        run.read(back, f"p{name}.fits", BIG)
        run.write(back, f"c{name}.fits", BIG)
        run.read(adds[name.split("-")[0]], f"c{name}.fits", BIG)
    return run


def images(kinds: tuple[str, ...], count: int) -> list[str]:
    return [f"{kind}-{k:03d}" for kind in kinds for k in range(count)]


@pytest.fixture(scope="module")
def hints() -> HintFile:
    """Hints learned from the colours, written as a hint file and parsed."""
    return parsed(to_json(learned(survey(images(COLOURS, 4)))))


def asked(hints: HintFile, run: Flowing, *, names: bool = True) -> dict[str, Match]:
    paths = run.analysis().files["path"].to_pylist()
    found = Matcher(hints).match(paths, None, 100, frozenset(paths) if names else ())
    return {match.path.decode(): match for match in found}


def test_files_of_another_data_set_are_known_by_their_company(hints: HintFile) -> None:
    other = survey(images(("2mass", "dss"), 5))
    found = asked(hints, other)
    for name in images(("2mass", "dss"), 5):
        patterns = [found[f"{head}{name}.fits"].pattern for head in ("", "p", "c")]
        assert patterns == ["stage_in", "broadcast", "reduce"], name
    strange = Matcher(hints).match([b"pzzz-1.fits"], None, 4, frozenset([b"pzzz-1.fits"]))[0]
    assert strange.rule is None or not strange.rule.conditions.beside


def test_without_the_names_nothing_is_guessed_from_company(hints: HintFile) -> None:
    found = asked(hints, survey(images(("2mass",), 5)), names=False)
    fired = [m for m in found.values() if m.rule is not None and m.rule.conditions.beside]
    assert fired == []
    assert any(why == "names" for m in found.values() for _, why in m.candidates)


def test_the_letters_of_a_name_tell_the_groups(hints: HintFile) -> None:
    found = asked(hints, survey(images(("a", "b"), 3)))
    groups = {name: found[f"c{name}.fits"].values["DP"] for name in images(("a", "b"), 3)}
    assert len(set(groups.values())) == 2
    for name, group in groups.items():
        assert group == groups[name[0] + "-000"]


def _readers_per_copy(rule: Rule | None) -> float:
    """Return the readers per copy in the rule's formula: the cost model chose 2 or 3 at a time."""
    assert rule is not None
    hints = [hint for hint in rule.hints if hint.name == "Replication" and hint.formula.fn]
    assert hints[0].formula.per in (2, 3)
    return hints[0].formula.per


@pytest.mark.slow
@pytest.mark.parametrize(("count", "fits"), [(4, 2), (40, 2), (4, 8), (10, 5)])
def test_copies_follow_the_files_that_the_readers_write(
    hints: HintFile, count: int, fits: int
) -> None:
    found = asked(hints, survey(images(COLOURS, count), fits))
    table = 3 * count  # proj tasks
    for name, readers in (("sky.tbl", table), ("pred-000.fits", fits + 1)):
        copies = max(2, math.ceil(readers / _readers_per_copy(found[name].rule)))
        assert found[name].values["Replication"] == str(copies)
    alone = asked(hints, survey(images(COLOURS, count), fits), names=False)
    assert alone["sky.tbl"].values["Replication"] == next(
        hint.value
        for rule in hints.rules
        if rule.template == "sky.tbl"
        for hint in rule.hints
        if hint.name == "Replication"
    ), "as in the run that was learned from"


def test_a_declared_graph_goes_before_counted_names(hints: HintFile) -> None:
    paths = [b"sky.tbl", *(b"pred-%03d.fits" % k for k in range(90))]
    readers = [[f"proj{k}" for k in range(6)], *([] for _ in range(90))]
    known = Declared(producers=[[] for _ in paths], consumers=readers)
    found = Matcher(hints).match(paths, known, 100, frozenset(paths))[0]
    assert found.values["Replication"] == str(math.ceil(6 / _readers_per_copy(found.rule))), (
        "not of 90 counted names"
    )


def test_the_score_tells_what_names_add(hints: HintFile) -> None:
    first = prepare(survey(images(COLOURS, 4)).analysis()).facts
    other = prepare(survey(images(("infra", "ultra"), 9)).analysis())
    data = score_prepared(hints, first, other)
    assert data["by_path_alone"]["recall"] < data["by_names"]["recall"] == 1.0
    assert data["by_names"]["precision"] == 1.0
    more = prepare(survey(images(("infra", "ultra"), 9), 8).analysis())
    data = score_prepared(hints, first, more, given="names")
    assert data["losses"] == {"another number of copies: the readers are not known": 18}, (
        "what counts the readers has names of the first data set"
    )


def test_names_without_company_make_no_family() -> None:
    assert by_family([]) == []
    run = Flowing()
    for k in range(3):
        run.write(run.task("make"), f"only_{k}.dat", BIG)
        run.read(run.task("use"), f"only_{k}.dat", BIG)
    assert not any(rule.conditions.beside for rule in learned(run).rules)


def test_names_from_a_list_reach_the_store(
    hints: HintFile, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dump(hints, tmp_path / "h.json")
    other = survey(images(("infra",), 3)).analysis().files["path"].to_pylist()
    (tmp_path / "names").write_bytes(b"\n".join(b"./" + path for path in other) + b"\n")
    command = ["emit", str(tmp_path / "h.json"), "--store", "xattr", "--nodes", "9"]
    for options, hinted in (([], False), (["--names", str(tmp_path / "names")], True)):
        out = tmp_path / f"out{hinted}.sh"
        assert main([*command, *options, "-o", str(out)]) == 0
        table = out.with_suffix(".sh.data").read_bytes()
        assert (b"pinfra-001.fits" in table) is hinted
    (tmp_path / "names").write_bytes(b"a\0../b\0")
    assert main([*command, "--names", str(tmp_path / "names")]) == 2
    assert "../b is not below" in capfd.readouterr().err
    assert main([*command, "--names", str(tmp_path / "none")]) == 2
    both = ["--names", str(tmp_path / "h.json"), "--like", str(tmp_path)]
    assert main([*command, *both]) == 2


def test_a_mark_in_front_does_where_the_company_cannot_be_asked(hints: HintFile) -> None:
    found = asked(hints, survey(images(("infra",), 3)), names=False)
    assert found["pinfra-001.fits"].pattern == "broadcast"
    assert found["cinfra-001.fits"].pattern == "reduce"
    assert found["infra-001.fits"].rule is None, "no mark tells an input from others"


# -- Readers that only peek into a file are not its readers in the next run's graph either


def run(tiles: int, *, peeks: bool) -> HintFile:
    """Learn from `fit` x tiles -> `add`; `table` reads the headers of all files, or whole files."""
    flow = Flowing()
    fits = [flow.task("fit") for _ in range(tiles)]
    table, add = flow.task("table"), flow.task("add")
    for k, fit in enumerate(fits):
        flow.write(fit, f"f_{k}.dat", BIG)
        flow.read(table, f"f_{k}.dat", BIG, 0, 2880 if peeks else None)
        flow.used[-1]["peek"] = peeks
        flow.read(add, f"f_{k}.dat", BIG)
    flow.write(add, "sum.dat", BIG)
    return learned(flow)


def workflow(folder: Path, tiles: int) -> Path:
    names = " ".join(f"f_{k}.dat" for k in range(tiles))
    rules = [f"f_{k}.dat: in_{k}.dat\n\tfit in_{k}.dat f_{k}.dat\n" for k in range(tiles)]
    rules += [f"all.tbl: {names}\n\ttable all.tbl\n", f"sum.dat: {names} all.tbl\n\tadd sum.dat\n"]
    path = folder / "w.mf"
    path.write_text("".join(rules))
    return path


@pytest.mark.parametrize(("peeks", "name"), [(True, "DP"), (False, "Replication")])
def test_a_declared_reader_that_only_peeked_leaves_a_reduce_a_reduce(
    tmp_path: Path, peeks: bool, name: str
) -> None:
    hints = run(5, peeks=peeks)
    assert hints.peeks == ((("fit", "table"),) if peeks else ())
    targets, _ = targets_by_task(hints, read_workflow(workflow(tmp_path, 7)), nodes=4)
    made = {t.path: dict(t.hints) for tags in targets for t in tags if t.kind == "A"}
    for k in range(7):
        assert name in made[b"f_%d.dat" % k]


def test_runs_that_disagree_know_no_peeks() -> None:
    one, other = (run(5, peeks=p).peeks for p in (True, False))
    assert find_agreed([frozenset(one), frozenset(one)]) == (("fit", "table"),)
    assert find_agreed([frozenset(one), frozenset(other)]) == find_agreed([]) == ()


def test_peeks_are_kept_in_the_hint_file_and_checked() -> None:
    hints = run(5, peeks=True)
    data = json.loads(json.dumps(to_json(hints)))
    assert parsed(data).peeks == hints.peeks
    del data["peeks"]
    assert parsed(data).peeks == ()  # files written before the field existed
    for wrong in (["fit"], ["fit", 1], ["fit", "x" * 20_000]):
        with pytest.raises(InputError, match="peeks"):
            parsed({**data, "peeks": [wrong]})


# -- Results for one name apply to all names that differ only in digits


_TEMPLATES = st.lists(
    st.sampled_from(["a", "7", "12_", "x_", "/", ".f", "_"] + ["{" + n + "}" for n in HOLES]),
    min_size=1,
    max_size=4,
).map("".join)


_NAMES = st.lists(
    st.sampled_from(["a", "7", "8", "12_", "13_", "x_", "b/", ".f", "_", "0"]),
    min_size=1,
    max_size=6,
).map(lambda parts: "".join(parts).encode())


def _fine(text: str) -> bool:
    try:
        parse(text)
    except Exception:
        return False
    return True


_GROUP = (Hint("DP", "collocation|g", "create", Formula(fn="group", captures=(0,), prefix="g")),)


_COPIES = (Hint("Replication", "3", "create", Formula(fn="replicas", per=3)),)


@st.composite
def _rules(draw: st.DrawFn) -> list[Rule]:
    texts = draw(st.lists(_TEMPLATES.filter(_fine), min_size=1, max_size=5))
    made = []
    for number, text in enumerate(texts):
        more: dict[str, Any] = {
            "producer": draw(st.sampled_from(["make", "cut"])),
            "hints": draw(st.sampled_from([_GROUP, _COPIES, (Hint("DP", "local", "create"),)])),
            "exclude": tuple(draw(st.lists(_TEMPLATES.filter(_fine), max_size=1))),
            "conditions": draw(
                st.sampled_from(
                    [
                        Conditions(),
                        Conditions(needs="types"),
                        Conditions(per_pair=1),
                        Conditions(beside=("{name}12_",)),
                    ]
                )
            ),
        }
        made.append(rule(text, id=f"r{number}", **more))
    return made


@pytest.mark.slow
@given(_rules(), st.lists(_NAMES, min_size=1, max_size=8), st.booleans(), st.data())
def test_together_as_one_by_one(
    rules: list[Rule], names: list[bytes], declared: bool, data: st.DataObject
) -> None:
    known = Declared()
    if declared:
        types = st.sampled_from(["make", "cut", "other", None])
        made = [data.draw(types) for _ in names]
        read = [data.draw(st.sampled_from([(), ("cut",), ("a", "b")])) for _ in names]
        known = Declared(made, read, [[str(m)] if m else [] for m in made], [list(r) for r in read])
    hints = hint_file(*rules)
    shared = Matcher(hints)
    for everything in ((), frozenset(names)):
        found = shared.match(names, known, 4, everything)
        # each from a matcher of its own that remembers no other name
        for i, match in enumerate(found):
            fresh = Matcher(hints)
            fresh.picker.remembered = _Forgetful()
            assert match == fresh.match(names, known, 4, everything)[i]


class _Forgetful(dict[Any, Any]):
    """A cache that stores nothing."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


def test_names_of_one_skeleton_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = fitted_names(monkeypatch, TemplateIndex)
    names = [b"run%03d/part_%04d.f" % (n % 7, n) for n in range(5_000)]
    found = Matcher(hint_file(rule("{dirs}part_{n}.f", hints=_GROUP))).match(names)
    assert len(looked) == 1
    assert found[4321].hints[0].value.startswith("collocation|g-run002")


@pytest.mark.parametrize(
    ("template", "alike"),
    [("part_{n}", True), ("chr21_{n}", False), ("chr{n}_{n}", True), ("other3", True)],
)
def test_digits_in_a_rule_tell_names_apart(template: str, alike: bool) -> None:
    assert Skeletons([parse(template)]).alike(skeleton_of(b"chr22_7"), 1000) == alike


def test_files_of_one_task_have_one_outcome_whatever_their_names() -> None:
    """If a task names the group, neither digits nor letters of its files lead to another hint."""
    names = [b"%s/part_%d.f" % (bytes([97 + n % 26]) * (n % 5 + 1), n) for n in range(500)]
    makers = [[f"m{n}"] for n in range(500)]
    readers = [[f"r{n % 3}"] for n in range(500)]
    known = Declared(["make"] * 500, [["cut"]] * 500, makers, readers)
    grouped = rule("{dirs}part_{n}.f", consumers=("cut",), hints=_GROUP)
    codes, found = Matcher(hint_file(grouped)).outcomes(names, known)
    assert len(found) == 3
    values = [found[code].hints[0].value for code in codes.tolist()]
    assert values == [f"collocation|{read[0]}" for read in readers]
