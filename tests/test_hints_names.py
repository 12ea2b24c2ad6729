"""What all names of a run tell that one name does not: companions, readers, groups."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.flows import Flowing
from tests.support.learning import BIG, learned
from tracehint.cli import main
from tracehint.hintgen.hints.hintcheck import from_json
from tracehint.hintgen.hints.hintfile import dump, to_json
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.learn.family import by_family
from tracehint.hintgen.match.match import Declared, Match, Matcher
from tracehint.hintgen.score.prepared import prepare
from tracehint.hintgen.score.score import score_prepared

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
    """Learned from the colours; also goes through a hint file."""
    return from_json(json.loads(json.dumps(to_json(learned(survey(images(COLOURS, 4)))))))


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
    assert strange.rule is None or "beside" not in strange.rule.conditions


def test_without_the_names_nothing_is_guessed_from_company(hints: HintFile) -> None:
    found = asked(hints, survey(images(("2mass",), 5)), names=False)
    fired = [m for m in found.values() if m.rule is not None and "beside" in m.rule.conditions]
    assert fired == []
    assert any(why == "names" for m in found.values() for _, why in m.candidates)


def test_the_letters_of_a_name_tell_the_groups(hints: HintFile) -> None:
    found = asked(hints, survey(images(("a", "b"), 3)))
    groups = {name: found[f"c{name}.fits"].values["DP"] for name in images(("a", "b"), 3)}
    assert len(set(groups.values())) == 2
    for name, group in groups.items():
        assert group == groups[name[0] + "-000"]


@pytest.mark.parametrize(("count", "fits"), [(4, 2), (40, 2), (4, 8), (10, 5)])
def test_copies_follow_the_files_that_the_readers_write(
    hints: HintFile, count: int, fits: int
) -> None:
    found = asked(hints, survey(images(COLOURS, count), fits))
    table = 3 * count  # proj tasks
    assert found["sky.tbl"].values["Replication"] == str(max(2, -(-table // 3)))
    projected = found["pred-000.fits"].values["Replication"]
    assert projected == str(max(2, -(-(fits + 1) // 3)))
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
    assert found.values["Replication"] == "2"


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
    assert not any("beside" in rule.conditions for rule in learned(run).rules)


def test_names_from_a_list_reach_the_store(
    hints: HintFile, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dump(hints, tmp_path / "h.json")
    other = survey(images(("infra",), 3)).analysis().files["path"].to_pylist()
    (tmp_path / "names").write_bytes(b"\n".join(b"./" + path for path in other) + b"\n")
    command = ["emit", str(tmp_path / "h.json"), "--store", "xattr", "--nodes", "9"]
    for given, hinted in (([], False), (["--names", str(tmp_path / "names")], True)):
        out = tmp_path / f"out{hinted}.sh"
        assert main([*command, *given, "-o", str(out)]) == 0
        table = out.with_suffix(".sh.data").read_bytes()
        assert (b"pinfra-001.fits" in table) is hinted
    (tmp_path / "names").write_bytes(b"a\0../b\0")
    assert main([*command, "--names", str(tmp_path / "names")]) == 2
    assert "../b does not lie below" in capfd.readouterr().err
    assert main([*command, "--names", str(tmp_path / "none")]) == 2
    both = ["--names", str(tmp_path / "h.json"), "--like", str(tmp_path)]
    assert main([*command, *both]) == 2


def test_a_mark_in_front_does_where_the_company_cannot_be_asked(hints: HintFile) -> None:
    found = asked(hints, survey(images(("infra",), 3)), names=False)
    assert found["pinfra-001.fits"].pattern == "broadcast"
    assert found["cinfra-001.fits"].pattern == "reduce"
    assert found["infra-001.fits"].rule is None, "no mark tells an input from others"
