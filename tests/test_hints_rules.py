"""Learning rules from small runs, and matching them."""

from __future__ import annotations

from functools import lru_cache

import pytest

from tests.support.flows import Flowing
from tests.support.learning import BIG, learned, mosaic
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.hints.template import parse
from tracehint.hintgen.learn.rules import LearnOptions, learn
from tracehint.hintgen.learn.safety import NO_LIMITS, Limits
from tracehint.hintgen.match.match import Declared, Match, match

pytestmark = pytest.mark.slow


@lru_cache
def plain(fallbacks: bool = True) -> HintFile:
    """Return the rules learned from the mosaic."""
    return learned(mosaic(), fallbacks=fallbacks)


def one(hints: HintFile, path: str, **known: object) -> Match:
    return match(hints, [path.encode()], **known)[0]  # type: ignore[arg-type]


def test_every_pattern_gets_its_hint_on_files_that_do_not_exist_yet() -> None:
    hints = plain()
    for path, name, value in (
        ("out/p_417.fits", "DP", "local"),
        ("in/tile_99.fits", "DP", "local"),
        ("out/f_12.txt", "DP", "collocation|add"),
        ("region.hdr", "Replication", "3"),
    ):
        assert one(hints, path).values[name] == value, path
    assert one(hints, "out/mosaic.fits").rule is None
    assert one(hints, "elsewhere/x.bin").reason == "no_rule"


def test_values_follow_the_declared_scale() -> None:
    hints = plain()
    known = Declared(
        producer_types=[None],
        consumer_types=[["proj"]],
        producers=[[]],
        consumers=[[f"t{k}" for k in range(20)]],
    )
    assert one(hints, "region.hdr", known=known, nodes=100).values["Replication"] == "10"
    assert one(hints, "region.hdr", known=known, nodes=3).values["Replication"] == "3"


def test_a_reduce_of_one_file_is_a_pipeline() -> None:
    hints = plain()
    known = Declared(["fit"], [["add"]], [["t1"]], [["t2"]])
    found = one(hints, "out/f_0.txt", known=known)
    assert (found.pattern, found.values["DP"]) == ("pipeline", "local")


def test_a_declared_output_gets_no_hint() -> None:
    known = Declared(["fit"], [[]], [["t1"]], [[]])
    assert one(plain(), "out/f_0.txt", known=known).rule is None


def test_contradicting_types_stop_a_rule_and_unknown_ones_do_not() -> None:
    hints = plain(fallbacks=False)
    assert one(hints, "out/f_1.txt", producer_types=["proj"], consumer_types=[["add"]]).reason == (
        "types"
    )
    assert one(hints, "out/f_1.txt", producer_types=["9f3c"], consumer_types=[["77aa"]]).rule


def test_groups_are_named_by_what_varies_between_them() -> None:
    run = Flowing()
    for colour in ("red", "green", "blue"):
        add = run.task("add")
        for k in range(3):
            make = run.task("make")
            run.write(make, f"{colour}-{k}.part", BIG)
            run.read(add, f"{colour}-{k}.part", BIG)
    hints = learned(run)
    values = [one(hints, f"{name}-7.part").values["DP"] for name in ("red", "green", "infra")]
    assert len(set(values)) == 3
    assert one(hints, "red-8.part").values["DP"] == values[0]


def test_files_that_only_the_graph_tells_apart_need_the_graph() -> None:
    run = Flowing()
    for k in range(6):
        task = run.task("fastqc")
        run.write(task, f"work/{k}/version.txt", BIG)
        if k == 0:
            run.read(run.task("versions"), f"work/{k}/version.txt", BIG)
    hints = learned(run)
    path = "work/9/version.txt"
    assert one(hints, path).reason == "needs_graph"
    read = Declared(["fastqc"], [["versions"]], [["t1"]], [["t2"]])
    assert one(hints, path, known=read).values == {"DP": "local"}
    unread = Declared(["fastqc"], [[]], [["t1"]], [[]])
    assert one(hints, path, known=unread).rule is None


def test_a_shape_with_two_patterns_of_one_use_is_refused_and_said() -> None:
    run = Flowing()
    for k in range(4):
        task = run.task("cut")
        run.write(task, f"{k}.bin", 4 * BIG)
        for part in range(4):  # half of the files are divided among readers, half are read whole
            reader = run.task("use")
            if k % 2:
                run.read(reader, f"{k}.bin", 4 * BIG)
            else:
                run.read(reader, f"{k}.bin", 4 * BIG, part * BIG, (part + 1) * BIG)
    hints = learned(run)
    assert one(hints, "9.bin").rule is None
    assert "mixed" in {refusal.reason for refusal in hints.refused} or any(
        "{" not in rule.template for rule in hints.rules
    )


def test_scatter_gets_blocks_that_no_two_regions_share() -> None:
    run = Flowing()
    split = run.task("split")
    run.write(split, "big.dat", 8 * BIG)
    for k in range(8):
        run.read(run.task("use"), "big.dat", 8 * BIG, k * BIG, (k + 1) * BIG)
    values = one(learned(run), "big.dat").values
    assert (values["DP"], values["BlockSize"]) == ("scatter|1", str(BIG))


def test_a_general_rule_does_not_catch_an_unhinted_file_of_the_run() -> None:
    run = mosaic()
    add = run.task("report")
    for k in range(5):
        run.write(add, f"out/final_{k}.txt", BIG)  # never read
    hints = learned(run)
    assert one(hints, "out/final_3.txt").rule is None
    assert one(hints, "out/f_3.txt").pattern == "reduce"


def test_most_specific_rule_wins_and_a_tie_is_a_conflict() -> None:
    hints = plain(fallbacks=False)
    base = next(rule for rule in hints.rules if rule.pattern == "reduce")
    local = next(rule for rule in hints.rules if rule.pattern == "pipeline")
    from dataclasses import replace

    twin = replace(local, id="twin", template=base.template, regex=base.regex)
    tied = HintFile((), {}, (base, twin))
    found = one(tied, "out/f_1.txt")
    assert (found.rule, found.reason, found.hints) == (None, "conflict", ())
    loose = parse("out/{name}.txt")
    wide = replace(local, id="wide", template=loose.text, regex=loose.regex)
    assert one(HintFile((), {}, (wide, base)), "out/f_1.txt").rule == base


def test_ten_thousand_paths_under_many_rules() -> None:
    run = Flowing()
    for stage in range(150):
        for k in range(2):
            run.write(run.task(f"make{stage}"), f"s{stage}/part_{k}.d{stage}", BIG)
            run.read(run.task(f"use{stage}"), f"s{stage}/part_{k}.d{stage}", BIG)
    hints = learned(run)
    paths = [b"s%d/part_%d.d%d" % (n % 150, n, n % 150) for n in range(10_000)]
    found = match(hints, paths)
    assert all(m.values["DP"] == "local" for m in found)


@pytest.mark.parametrize(
    ("limits", "reason", "pattern"),
    [
        (Limits(min_paying=0.5), "no_gain", "pipeline"),
        (Limits(min_paying=0, min_file_bytes=10_000), "too_small", "pipeline"),
        (Limits(min_paying=0, node_bytes=2_000), "capacity", "reduce"),
        (Limits(min_paying=0, call_ms=7, link_mbit=200), "call_cost", "pipeline"),
        (Limits(min_paying=0, replica_budget=1e-6), "replica_budget", "broadcast"),
    ],
)
def test_refusals_state_the_threshold(limits: Limits, reason: str, pattern: str) -> None:
    hints = learned(mosaic(size=1_000), limits)
    refusal = next(r for r in hints.refused if r.reason == reason and r.pattern == pattern)
    assert any(char.isdigit() for char in refusal.text)
    assert "--" in refusal.text
    assert not any(r.pattern == pattern and r.template == refusal.template for r in hints.rules)


def test_refused_names_are_not_caught_by_a_more_general_rule() -> None:
    run = mosaic()
    for k in range(5):
        tiny, use = run.task("proj"), run.task("fit")
        run.write(tiny, f"out/q_{k}.fits", 10)
        run.read(use, f"out/q_{k}.fits", 10)
    hints = learned(run, Limits())
    assert one(hints, "out/q_7.fits").rule is None
    assert one(hints, "out/p_7.fits").values["DP"] == "local"


def test_learning_from_two_runs_keeps_what_both_say() -> None:
    hints = learn([mosaic(3).analysis(), mosaic(6).analysis()], LearnOptions(limits=NO_LIMITS))
    rule = one(hints, "out/f_1.txt").rule
    assert rule is not None
    assert rule.evidence["files"] == 9
    assert len(hints.learned_from) == 2


def test_advice_for_files_that_are_read_again_or_at_random() -> None:
    run = Flowing()
    for k in range(3):
        run.write(run.task("make"), f"index_{k}.db", BIG)
        run.gone.add(f"index_{k}.db")
        reader = run.task("look")
        run.read(reader, f"index_{k}.db", BIG)
        row = run.used[-1]
        row["bytes"] = 4 * BIG
        row["ranges"] = [[at * 4096, at * 4096 + 512] for at in range(200)]
        row["unique_bytes"] = 200 * 512
    found = one(learned(run), "index_9.db")
    advice = {h.name: h.value for h in found.hints if h.level == "advisory"}
    assert advice == {"Lifetime": "temporary|look", "CacheSize": str(BIG), "Access": "random"}


def _two_readers(*, ordered: bool, gone: bool) -> dict[str, str]:
    """Return advice for a file that `call` reads first and `depth`, which ends later, reads too."""
    run = Flowing()
    for k in range(3):
        run.write(run.task("merge"), f"m_{k}.bam", BIG)
        call, depth = run.task("call"), run.task("depth")
        run.read(call, f"m_{k}.bam", BIG)
        run.used[-1]["last_s"] = 2.0
        run.read(depth, f"m_{k}.bam", BIG)
        if ordered:
            sort = run.task("sort")
            run.write(call, f"c_{k}.vcf", 4096)
            run.read(sort, f"c_{k}.vcf", 4096)
            run.write(sort, f"s_{k}.vcf", 4096)
            run.read(depth, f"s_{k}.vcf", 4096)
        if gone:
            run.gone.add(f"m_{k}.bam")
    hints = one(learned(run), "m_9.bam").hints
    return {h.name: h.value for h in hints if h.level == "advisory"}


def test_readers_that_know_nothing_of_each_other_have_no_last_one() -> None:
    assert _two_readers(ordered=False, gone=False) == {}
    assert _two_readers(ordered=False, gone=True) == {"Lifetime": "temporary"}


def test_a_reader_that_waits_for_all_others_is_the_last() -> None:
    assert _two_readers(ordered=True, gone=False) == {"LastReader": "depth"}
    advice = {"Lifetime": "temporary|depth", "LastReader": "depth"}
    assert _two_readers(ordered=True, gone=True) == advice


def test_a_group_seen_once_is_named_by_what_never_changed_in_it() -> None:
    run = Flowing()
    add = run.task("add")
    for k in range(4):
        make = run.task("make")
        run.write(make, f"lane_3-{k}.part", BIG)
        run.read(add, f"lane_3-{k}.part", BIG)
    hints = learned(run)
    groups = [one(hints, f"lane_{lane}-{k}.part").values["DP"] for lane in (3, 8) for k in (7, 9)]
    assert groups[0] == groups[1] != groups[2] == groups[3]


def test_a_group_of_several_kinds_of_names_is_not_torn() -> None:
    run = Flowing()
    add = run.task("add")
    for k in range(4):
        make = run.task("make")
        for name in (f"lane_3-{k}.part", f"index_5-{k}.tab"):
            run.write(make, name, BIG)
            run.read(add, name, BIG)
    hints = learned(run)
    values = {one(hints, name).values["DP"] for name in ("lane_3-9.part", "index_5-9.tab")}
    assert values == {"collocation|add"}


def graph(*rows: tuple[str, str | None, str]) -> tuple[list[bytes], Declared]:
    """Return paths, and each one's producing and consuming task (a type, a dot, a number)."""

    def kind(task: str) -> str:
        return task.partition(".")[0]

    return [path.encode() for path, _, _ in rows], Declared(
        producer_types=[kind(made) if made else None for _, made, _ in rows],
        consumer_types=[[kind(read)] for _, _, read in rows],
        producers=[[made] if made else [] for _, made, _ in rows],
        consumers=[[read] for _, _, read in rows],
    )


def test_a_marker_beside_each_data_file_is_left_alone() -> None:
    hints = plain()
    data = [(f"out/p_{k}.fits", f"proj.{k}", f"fit.{k}") for k in range(4)]
    strange = [(f"made/image-{k}", f"proj.{k}", f"fit.{k}") for k in range(4)]
    marks = [(f"out/p_{k}.done", f"proj.{k}", f"fit.{k}") for k in range(4)]
    for files in (data, strange):
        paths, known = graph(*files)
        assert {m.pattern for m in match(hints, paths, known=known)} == {"pipeline"}
    paths, known = graph(*data, *marks)
    found = match(hints, paths, known=known)
    assert [m.reason for m in found] == ["fired"] * 4 + ["extra"] * 4
    paths, known = graph(*strange, *marks)
    assert {m.reason for m in match(hints, paths, known=known)} == {"extra"}


def test_a_file_that_is_there_and_small_is_left_alone() -> None:
    hints = plain()
    for size, reason in ((None, "fired"), (BIG // 100, "fired"), (200, "small"), (0, "small")):
        assert one(hints, "in/tile_7.fits", known=Declared(sizes=[size])).reason == reason


def test_groups_of_several_runs_keep_their_names() -> None:
    def lanes(*numbers: int) -> Flowing:
        run = Flowing()
        for lane in numbers:
            add = run.task("add")
            for k in range(4):
                name = f"lane_{lane}-{k}.part"
                run.write(run.task("make"), name, BIG)
                run.read(add, name, BIG)
        return run

    for runs in ([(3,), (3,)], [(3,), (5,)], [(1, 2), (1, 2, 4)], [(1,), (1, 2)]):
        analyses = [lanes(*numbers).analysis() for numbers in runs]
        hints = learn(analyses, LearnOptions(limits=NO_LIMITS))
        groups = {lane: one(hints, f"lane_{lane}-9.part").values["DP"] for lane in (7, 8)}
        assert groups[7] != groups[8], runs
