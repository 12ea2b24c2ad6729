"""The workflows of `bench_cluster`: real programs, their inputs, and hints written by hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from datasets.montage.make_workflow import neighbours
from tests.e2e.support import makeflow_rules

HERE = Path(__file__).parents[2]
MB = 1_000_000
NODES = 5
TILES, COLUMNS = 12, 4
PROTEIN, QUERY = 5_000, 120  # letters
READS, READ = 2_000, 100  # reads per node, bases per read
_LETTERS = b"ACDEFGHIKLMNPQRSTVWY"
DATABASE = tuple(f"db.{kind}" for kind in ("pdb", "phr", "pin", "pot", "psq", "ptf", "pto"))
INDEX = tuple(f"ref.fa.{kind}" for kind in ("amb", "ann", "bwt", "pac", "sa"))
LOCAL = {"DP": "local"}
EVERYWHERE = {"Replication": str(NODES)}
_SNAKEMAKE = Path(sys.executable).with_name("snakemake")
Hints = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class ClusterWorkflow:
    """`make` writes inputs and workflow file of a size to a directory; `result`: file to compare.
    `batch`: the engine runs on a login node and submits its tasks as jobs."""

    title: str
    make: Callable[[Path, int], None]
    size: int
    command: str
    result: str
    by_hand: Callable[[], Hints]
    programs: tuple[str, ...]
    batch: bool = False


def rules(*parts: tuple[str, str, str]) -> str:
    """Return Makeflow text from (files made, files read, command)."""
    return "\n".join(f"{made}: {read}\n\t{command}\n" for made, read, command in parts)


def make_montage(folder: Path, pixels: int) -> None:
    """Make twelve tiles of `pixels`, to be projected by the fast program."""
    dataset, size = HERE / "datasets" / "montage", f"--pixels={pixels}"
    for script, target in (("make_tiles.py", folder / "archive"), ("make_workflow.py", folder)):
        subprocess.run([sys.executable, dataset / script, target, size], check=True)
    flow = folder / "montage.makeflow"
    flow.write_text(flow.read_text().replace("mProject ", "mProjectPP "))


def make_montage_snakefile(folder: Path, pixels: int) -> None:
    """Make the same workflow as a Snakefile, with a rule per task."""
    make_montage(folder, pixels)
    flow = folder / "montage.makeflow"
    parts = ['rule all:\n    input: "mosaic.png"\n']
    for number, (made, read, command) in enumerate(makeflow_rules(flow.read_text())):
        parts.append(
            f"rule t{number}:\n    input: {read}\n    output: {made}\n    shell: {command!r}\n"
        )
    (folder / "Snakefile").write_text("\n".join(parts))
    flow.unlink()


def hint_montage() -> Hints:
    """Keep projected and difference images local; co-locate corrected ones, which are added up."""
    hints: dict[str, Mapping[str, str]] = {"mosaic.fits": LOCAL, "small.fits": LOCAL}
    for k in range(TILES):
        hints[f"raw/tile_{k:02d}.fits"] = LOCAL
        for area in ("", "_area"):
            hints[f"proj/p_{k:02d}{area}.fits"] = LOCAL
            hints[f"corr/c_{k:02d}{area}.fits"] = {"DP": "collocation|mosaic"}
    for a, b in neighbours(COLUMNS, TILES // COLUMNS):
        hints[f"fit/f_{a:02d}_{b:02d}.txt"] = {"DP": "collocation|fit"}
        for area in ("", "_area"):
            hints[f"diff/d_{a:02d}_{b:02d}{area}.fits"] = LOCAL
    return hints


def make_blast(folder: Path, residues: int) -> None:
    """Make database and queries; one search per node, then all hits in one file."""
    import numpy as np

    rng = np.random.default_rng(1)
    letters = np.frombuffer(_LETTERS, np.uint8)
    with (folder / "db.fa").open("wb") as out:
        for k in range(residues // PROTEIN):
            protein = letters[rng.integers(0, len(letters), PROTEIN, np.uint8)].tobytes()
            out.write(b">s%d\n%s\n" % (k, protein))
            if k < NODES:
                (folder / f"q_{k}.fa").write_bytes(b">q%d\n%s\n" % (k, protein[:QUERY]))
    words = ["makeblastdb", "-in", "db.fa", "-dbtype", "prot", "-out", "db"]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (folder / "db.fa").unlink()
    hits = [f"hits_{k}.tsv" for k in range(NODES)]
    search = "blastp -task blastp-fast -db db -outfmt 6 -evalue 1e-5"
    searches = [
        (hit, f"q_{k}.fa {' '.join(DATABASE)}", f"{search} -query q_{k}.fa -out {hit}")
        for k, hit in enumerate(hits)
    ]
    join = ("hits.tsv", " ".join(hits), f"sort {' '.join(hits)} > hits.tsv")
    (folder / "workflow.makeflow").write_text(rules(*searches, join))


def make_bwa(folder: Path, bases: int, reads: int = READS) -> None:
    """Make index and `reads` reads per node; alignment and sorting per node, then one file."""
    import numpy as np

    rng = np.random.default_rng(1)
    genome = np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, bases, np.uint8)].tobytes()
    (folder / "ref.fa").write_bytes(b">chr1\n" + genome + b"\n")
    subprocess.run(["bwa", "index", "ref.fa"], cwd=folder, check=True, capture_output=True)
    (folder / "ref.fa").unlink()
    chains = []
    for k in range(NODES):
        starts = rng.integers(0, bases - READ, reads).tolist()
        text = [
            b"@r%d_%d\n%s\n+\n%s\n" % (k, i, genome[at : at + READ], b"I" * READ)
            for i, at in enumerate(starts)
        ]
        fastq, sam, bam = (f"part_{k}.{kind}" for kind in ("fq", "sam", "bam"))
        (folder / fastq).write_bytes(b"".join(text))
        align = f"bwa mem -o {sam} ref.fa {fastq}"
        chains.append((sam, f"{fastq} {' '.join(INDEX)}", align))
        chains.append((bam, sam, f"samtools sort --no-PG -o {bam} {sam}"))
    bams = " ".join(f"part_{k}.bam" for k in range(NODES))
    merge = f"samtools merge --no-PG -c -p -s 1 -f merged.bam {bams}"
    (folder / "workflow.makeflow").write_text(rules(*chains, ("merged.bam", bams, merge)))


def hint_bwa() -> Hints:
    """Copy the index to every node, keep alignments local, co-locate the sorted ones."""
    hints: dict[str, Mapping[str, str]] = dict.fromkeys(INDEX, EVERYWHERE)
    for k in range(NODES):
        hints[f"part_{k}.sam"] = LOCAL
        hints[f"part_{k}.bam"] = {"DP": "collocation|merge"}
    return hints


_MAKEFLOW = "makeflow -T local -j 10"
_SLURM = "makeflow -T slurm workflow.makeflow"
WORKFLOWS: dict[str, ClusterWorkflow] = {
    "montage": ClusterWorkflow(
        "Montage, 102 tasks, Makeflow", make_montage, 700, f"{_MAKEFLOW} montage.makeflow",
        "mosaic.fits", hint_montage, ("makeflow", "mProjectPP"),
    ),
    "montage-batch": ClusterWorkflow(
        "Montage, 102 jobs of Slurm", make_montage, 700, "makeflow -T slurm montage.makeflow",
        "mosaic.fits", hint_montage, ("makeflow", "mProjectPP"), batch=True,
    ),
    "montage-snakemake": ClusterWorkflow(
        "Montage, 102 tasks, Snakemake", make_montage_snakefile, 700,
        f"{_SNAKEMAKE} --cores 10 --quiet all", "mosaic.fits", hint_montage,
        (str(_SNAKEMAKE), "mProjectPP"),
    ),
    "blast": ClusterWorkflow(
        "BLAST, 5 searches of 300 MB", make_blast, 300 * MB, f"{_MAKEFLOW} workflow.makeflow",
        "hits.tsv", lambda: dict.fromkeys(DATABASE, EVERYWHERE), ("makeflow", "blastp"),
    ),
    "bwa": ClusterWorkflow(
        "BWA, 5 parts on an index of 105 MB", make_bwa, 60 * MB, f"{_MAKEFLOW} workflow.makeflow",
        "merged.bam", hint_bwa, ("makeflow", "bwa", "samtools"),
    ),
    "blast-batch": ClusterWorkflow(
        "BLAST, 6 jobs of Slurm", make_blast, 300 * MB, _SLURM, "hits.tsv",
        lambda: dict.fromkeys(DATABASE, EVERYWHERE), ("makeflow", "blastp"), batch=True,
    ),
    "bwa-batch": ClusterWorkflow(
        "BWA, 11 jobs of Slurm", make_bwa, 60 * MB, _SLURM, "merged.bam", hint_bwa,
        ("makeflow", "bwa", "samtools"), batch=True,
    ),
}  # fmt: skip  # a table
