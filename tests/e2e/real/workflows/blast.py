"""BLAST under Makeflow: format a database, search it with four sets of queries, join the hits."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.real.model import Job, Workflow
from tests.e2e.real.workflows.inputs import make

PARTS = range(4)
# Files that the manual of makeblastdb lists for nucleotides, version 5.
DATABASE = tuple(f"db/ref.{x}" for x in ("ndb", "nhr", "nin", "not", "nsq", "ntf", "nto"))


def jobs() -> list[Job]:
    search = [
        Job(
            f"blastn {k}",
            f"blastn -query query_{k}.fa",
            (f"query_{k}.fa", *DATABASE),
            (f"hits_{k}.tsv",),
        )
        for k in PARTS
    ]
    hits = tuple(f"hits_{k}.tsv" for k in PARTS)
    return [
        Job("makeblastdb", "makeblastdb -in reference.fa", ("reference.fa",), DATABASE),
        *search,
        Job("sort", "sort -k 12", hits, ("hits.tsv",)),
    ]


def prepare(folder: Path) -> None:
    make("real/make_sequences.py", folder, "--bases", "8000000", "--queries", "8")
    (folder / "db").mkdir()
    database = " ".join(DATABASE)
    rules = [
        f"{database}: reference.fa\n"
        "\tmakeblastdb -in reference.fa -dbtype nucl -out db/ref > /dev/null\n"
    ]
    rules += [
        f"hits_{k}.tsv: query_{k}.fa {database}\n"
        f"\tblastn -query query_{k}.fa -db db/ref -outfmt 6 -out hits_{k}.tsv\n"
        for k in PARTS
    ]
    hits = " ".join(f"hits_{k}.tsv" for k in PARTS)
    rules.append(f"hits.tsv: {hits}\n\tsort -k 12 -n {hits} > hits.tsv\n")
    (folder / "blast.makeflow").write_text("\n".join(rules))


WORKFLOW = Workflow(
    name="blast",
    title="BLAST, mapped database (Makeflow)",
    needs=("makeflow", "blastn", "makeblastdb"),
    prepare=prepare,
    command=("makeflow", "-j", "2", "blast.makeflow"),
    jobs=jobs,
    # Taxonomy tables, which these queries do not use.
    not_used=lambda: {(f"blastn {k}", f"db/ref.{x}") for k in PARTS for x in ("not", "ntf", "nto")},
    shows=(("db/ref.nsq", "broadcast"), ("hits_0.tsv", "reduce"), ("query_0.fa", "stage_in")),
)
