"""Random parts of names: what becomes one placeholder, and what only looks random."""

from __future__ import annotations

import random
import string
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehint.adapters.creation.resolution import _find_generated_names, _templates
from tracehint.hintgen.learn.candidates import template_of_shape
from tracehint.hintgen.text import masks
from tracehint.hintgen.text.masks import masks_of, shapes_of

PYTHON = string.ascii_lowercase + string.digits + "_"  # the alphabet of tempfile
MKTEMP = string.ascii_letters + string.digits


def templates(*names: str, runs: list[int] | None = None) -> list[str]:
    paths = pa.array([name.encode() for name in names], pa.binary())
    shapes = shapes_of(paths, None if runs is None else pa.array(runs))
    return [template_of_shape(shape).text for shape in shapes.to_pylist()]


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["o/lfmg4y1n/chunk_3", "o/x8k2_mq1/chunk_1"], "o/{random}/chunk_{n}"),
        (["tmp/tmpab12cd/x", "tmp/tmpx7k2_abq/x"], "tmp/tmp{random}/x"),
        (["t/tmpab12cd"], "t/tmp{random}"),
        (["tmp/xyz.8Gh2Kq"], "tmp/xyz.{random}"),
        (["t/tmp.Ab3dEf9hIj.bam"], "t/tmp.{random}.bam"),
        (["t/tmp.4FO9YRKH7G"], "t/tmp.{random}"),
        (["t/tmp.4FO9YRKH7G", "t/tmp.Ab3dEf9hIj", "t/tmp.q8RtY2ZmkP"], "t/tmp.{random}"),
        (["nxf.Xq3kLm9ZtA/out"], "nxf.{random}/out"),
        ([".snakemake/shadow/tmp3k9x_q2a/a.bam"], ".snakemake/shadow/tmp{random}/a.bam"),
        (["work/3f/0123456789abcdef0123456789abcd/a"], "work/{hash}/{hash}/a"),
        (["j/123e4567-e89b-12d3-a456-426614174000/a"], "j/{uuid}/a"),
        (["in/d41d8cd98f00b204e9800998ecf8427e.fa"], "in/{hash}.fa"),
        (["runinfo/000/task_3.out"], "runinfo/{n}/task_{n}.out"),
        (["run-2024-01-31/x"], "run-{date}/x"),
    ],
)
def test_what_engines_and_libraries_make_up_is_one_placeholder(
    names: list[str], wanted: str
) -> None:
    assert {*templates(*names)} == {wanted}


# Names that look random but are not, in directories that people name: none of them may become
# {random}, whether alone, beside the others of its line, or in several runs.
NOT_RANDOM = [
    ["ENSG00000139618.bed", "ENSG00000141510.bed", "ENSMUSG00000059552.bed"],
    ["tmp.SRR1234567", "tmp.ERR0164407"], ["tmp_A1B2C3D4", "tmp_A2B1C3D4"],
    ["SRR1234567.fastq", "ERR0164407.fastq", "DRR000897.fastq"],
    ["chr1/x", "chr2/x", "chrX/x", "chr10/x", "chrUn_KI270302v1/x"],
    ["ref/GRCh38/a", "ref/GRCm39/a", "ref/GRCh37/a"],
    ["GRCh38p13/a", "GRCh38p14/a"], ["x.GRCh38/a"], ["hg19/a", "hg38/a", "mm10/a"],
    ["NA12878/x.bam", "NA12891/x.bam", "HG00096/x.bam"],
    ["CYP2D6/x", "PIK3CA/x", "MAP3K1/x", "CDKN2A/x", "IL12RB1/x"],
    ["Q9Y6K9/x", "P12345/x", "A0A024R1R8/x"],
    ["s1r2c3/x", "s1r2c4/x", "s10r2c3/x"], ["p_1_h2.fits", "p_2_h2.fits"],
    ["hisat2_a/x", "salmon10/x", "bowtie2x/x"], ["20240131T1010/x", "20240201T0930/x"],
    ["2mass-atlas-990502s-j1430092.fits", "2mass-atlas-990502s-j1430080.fits"],
    ["tmpfile01", "tmpfile02"], ["tmp_results.txt"], ["templates/x"], ["temperature.nc"],
    ["sub-01_ses-2/x", "sub-02_ses-1/x"], ["v1.2.3/x", "v1.10.0/x"],
    ["part-00000.snappy", "part-00001.snappy"], ["sample1a/x", "sample2b/x", "sample3a/x"],
    ["analysis/x", "assembly/x", "variants/x"],
]  # fmt: skip  # a table


@pytest.mark.parametrize("names", NOT_RANDOM, ids=lambda names: names[0])
def test_what_only_looks_random_stays(names: list[str]) -> None:
    every = [*names, *(f"{name}.old" for name in names)]
    same = [*names, *names]
    for some, runs in (
        *(([name], None) for name in names),
        (names, None),
        (every, None),
        (same, [0] * len(names) + [1] * len(names)),
    ):
        assert not [t for t in templates(*some, runs=runs) if "{random}" in t]


def test_what_two_runs_have_is_not_random_in_either() -> None:
    """Parts next to it that change from run to run are random."""
    names = ["o/x8k2mq1a/f", "o/q3v9zz7k/f", "o/lfmg4y1n/f", "o/x8k2mq1a/f", "o/k7w2p9sd/f"]
    found = templates(*names, runs=[0, 0, 0, 1, 1])
    assert found[1] == found[2] == found[4] == "o/{random}/f"
    assert found[0] == found[3] != "o/{random}/f"


def test_words_beside_random_names_stay() -> None:
    found = templates("o/lfmg4y1n/x", "o/x8k2_mq1/x", "o/analysis/x", "o/results/x")
    assert found == ["o/{random}/x", "o/{random}/x", "o/analysis/x", "o/results/x"]


@pytest.mark.parametrize(("letters", "length"), [(PYTHON, 8), (MKTEMP, 6), (MKTEMP, 10)])
def test_directories_of_two_runs_are_found_whatever_their_letters(
    letters: str, length: int
) -> None:
    """Four work directories in each of two runs: a part is rarely missed."""
    dice = random.Random(7)
    missed = 0
    for _ in range(200):
        names = [f"o/{''.join(dice.choice(letters) for _ in range(length))}/f" for _ in range(8)]
        found = templates(*names, runs=[0] * 4 + [1] * 4)
        missed += found != ["o/{random}/f"] * 8
    assert missed <= 2


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, 7, 12])
def test_the_directories_of_a_single_run_are_found(count: int) -> None:
    """This includes the one in twelve with letters only, in the same directory as the others."""
    dice = random.Random(8)
    missed = 0
    for _ in range(500):
        names = [f"o/{''.join(dice.choice(PYTHON) for _ in range(8))}/f" for _ in range(count)]
        missed += templates(*names) != ["o/{random}/f"] * count
    assert missed <= 5


def test_directories_that_somebody_named_stay_beside_a_few_drawn_ones() -> None:
    named = ["o/database/x", "o/analyses/x", "o/pictures/x", "o/children/x", "o/metadata/x"]
    assert templates(*named, "o/lfmg4y1n/x", "o/x8k2_mq1/x")[:5] == named


DATED = b"out/2021-03-04.csv"


def test_names_beside_a_date_keep_their_shapes() -> None:
    """Steps examine the few layouts with digits replaced by zeros, unless there are dates."""
    names = [
        b"work/3f/0123456789abcdef0123456789abcd/1.txt",
        b"u-123e4567-e89b-12d3-a456-426614174000.dat",
        b"ccX1y2Z3.o",
        b"0123456789ab/0123456789ab",
    ]
    shapes = shapes_of(pa.array(names, pa.binary())).to_pylist()
    beside = shapes_of(pa.array([*names, DATED], pa.binary())).to_pylist()
    assert beside == [*shapes, b"out/\x00d.csv"]


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.binary(max_size=20).filter(lambda name: b"\0" not in name), max_size=12),
    st.randoms(use_true_random=False),
)
def test_any_bytes_are_matched_by_their_template(names: list[bytes], dice: random.Random) -> None:
    runs = pa.array([dice.randint(0, 1) for _ in names], pa.int32())
    shapes = shapes_of(pa.array(names, pa.binary()), runs).to_pylist()
    for name, shape in zip(names, shapes, strict=True):
        template = template_of_shape(shape)
        assert name == b"" or template.match(name) is not None


def test_the_summary_and_findings_show_one_star() -> None:
    names = ["o/lfmg4y1n/chunk_3", "o/x8k2_mq1/chunk_1", "work/3f/0123456789abcdef0123456789abcd/a"]
    assert masks_of(pa.array(names)).to_pylist() == ["o/*/chunk_*", "o/*/chunk_*", "work/*/*/a"]


def test_many_names_cost_one_look_per_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters add no layouts: thousands of names have only a few."""
    seen: list[int] = []
    search = masks.mask_layouts

    def counted(layouts: Any, runs: Any) -> Any:
        seen.append(len(layouts))
        return search(layouts, runs)

    monkeypatch.setattr(masks, "mask_layouts", counted)
    shapes_of(pa.array([f"d{i % 97}/part_{i}.bam".encode() for i in range(20_000)]))
    assert sum(seen) <= 10


# -- Temporary names at creation: those of the next run match, whatever parts a program draws


@pytest.mark.parametrize("seed", range(200))
def test_three_drawn_names_are_told_whatever_they_are(seed: int) -> None:
    dice = random.Random(seed)
    letters = string.ascii_letters + string.digits + "_"
    drawn = ["".join(dice.choices(letters, k=6)) for _ in range(3)]
    pairs = [(b"out/XX" + name.encode(), b"out/x%d.dat" % i) for i, name in enumerate(drawn)]
    found = set(_templates(pairs))
    assert len(found) == 1 and "{" in found.pop()


@pytest.mark.parametrize(
    "pairs",
    [
        [(b"a1.part", b"a1"), (b"a2.part", b"a2"), (b"a3.part", b"a3")],
        [(b"t.chrom1x", b"chrom1x"), (b"t.chrom2y", b"chrom2y"), (b"t.genom3z", b"genom3z")],
        [(b"d/abcd", b"x"), (b"d/efgh", b"y")],
        [(b"d/abcd", b"x"), (b"e/efgh", b"y"), (b"f/ijkl", b"z")],
        [(b"d/ab.cd", b"x"), (b"d/ef.gh", b"y"), (b"d/ij.kl", b"z")],
        [(b"d/same", b"x"), (b"d/same", b"y"), (b"d/same", b"z")],
    ],
)
def test_names_that_say_what_they_become_are_no_draws(pairs: list[tuple[bytes, bytes]]) -> None:
    assert _find_generated_names(pairs) == {}
