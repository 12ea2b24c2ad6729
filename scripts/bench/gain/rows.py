"""The rows: an instance, the one its rules are learned on, divisors, and hints by hand."""

from __future__ import annotations

from dataclasses import dataclass

DATA_BOUND = 6.25  # divisor of run times by that of sizes: 125 cores per Gbit, not 20
WIDELY = 5  # number of readers of an input from which it has copies by hand


@dataclass(frozen=True, kw_only=True)
class Row:
    """`source` and `learned`: paths in the corpus; `by`: divisor of sizes and (even) of times.

    `hand`: (regular expression of the writer's type, hint) in order, as by a user who has read
    the paper's table: local, group (all inputs of one task on one node), copies.
    """

    name: str
    title: str
    source: str
    learned: str
    by: float
    hand: tuple[tuple[str, str], ...]


_PEGASUS, _MAKEFLOW, _NEXTFLOW = "pegasus", "makeflow", "nextflow"
_MONTAGE = (("mDiffFit|mBackground", "group"), (".", "local"))
_NF_CORE = (("BWA_INDEX|STAR_GENOMEGENERATE|SALMON_INDEX", "copies"), (".", "local"))


def _nf_core(name: str, by: float) -> Row:
    source = f"{_NEXTFLOW}/{name}-dirt02-001"
    return Row(
        name=name, title=f"nf-core {name}", source=source, learned=source, by=by, hand=_NF_CORE
    )


def _pegasus(
    name: str, title: str, instance: str, learned: str, by: float, *hand: tuple[str, str]
) -> Row:
    start = f"{_PEGASUS}/{name.partition('-')[0]}/{name.partition('-')[0]}-chameleon"
    return Row(
        name=name, title=title, source=f"{start}-{instance}", learned=f"{start}-{learned}", by=by,
        hand=hand,
    )  # fmt: skip  # a table


ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        _pegasus("montage-2mass", "Montage 2mass, 748 tasks", "2mass-03d-001", "2mass-025d-001", 8,
            *_MONTAGE),
        _pegasus("epigenomics", "Epigenomics hep, 119 tasks", "hep-2seq-100k-001",
            "hep-3seq-100k-001", 5, ("^fastqSplit", ""), ("^map", "group"), (".", "local")),
        _pegasus("srasearch", "SRAsearch, 22 tasks", "10a-001", "20a-001", 40,
            ("bowtie2-build", "copies"), ("^bowtie2$", "group"), (".", "local")),
        Row(name="bwa", title="BWA, 1,004 tasks", by=10,
            source=f"{_MAKEFLOW}/bwa/bwa-chameleon-large-001",
            learned=f"{_MAKEFLOW}/bwa/bwa-chameleon-large-002",
            hand=(("bwa_index", "copies"), ("^bwa$", "group"), (".", ""))),
        _pegasus("montage-dss", "Montage dss, 178 tasks", "dss-075d-001", "dss-05d-001", 32,
            *_MONTAGE),
        _pegasus("1000genome", "1000Genome, 104 tasks", "4ch-100k-001", "6ch-100k-001", 40,
            ("^individuals$", "group"), ("merge|sifting", "copies"), (".", "local")),
        _pegasus("cycles", "Cycles, 133 tasks", "2l-1c-9p-001", "1l-2c-9p-001", 8,
            ("parser$", "group"), (".", "local")),
        _nf_core("rnaseq", 4),
        _nf_core("atacseq", 8),
        _nf_core("taxprofiler", 8),
        _pegasus("montage-2mass-large", "Montage 2mass, 1,738 tasks", "2mass-05d-001",
            "2mass-03d-001", 8, *_MONTAGE),
    )
}  # fmt: skip  # a table


@dataclass(frozen=True)
class Scale:
    """`times`: divisor of run times, as a multiple of the divisor of sizes; `link`: Mbit/s of a
    node's link."""

    times: float
    link: int = 200


SCALES = {
    "data": Scale(DATA_BOUND),
    # Half the link rate with the same cores per Gbit: everything takes twice as long, except the
    # processing on the bench's machine itself.
    "halved": Scale(DATA_BOUND / 2, 100),
    "even": Scale(1.0),
}
