"""BWA and samtools under Snakemake: index, split, align, sort, merge."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.real.model import Job, Workflow
from tests.e2e.real.workflows.inputs import make

PARTS = range(4)
INDEX = tuple(f"reference.fa.{x}" for x in ("amb", "ann", "bwt", "pac", "sa"))
SNAKEFILE = f"""
PARTS = {[str(k) for k in PARTS]}
INDEX = expand("reference.fa.{{x}}", x=["amb", "ann", "bwt", "pac", "sa"])

rule all:
    input: "merged.bam.bai"

rule index:
    input: "reference.fa"
    output: INDEX
    shell: "bwa index {{input}} 2> /dev/null"

rule split:
    input: "reads.fq"
    output: expand("part_{{k}}.fq", k=PARTS)
    shell: "split -l 16000 -d -a 1 --additional-suffix=.fq {{input}} part_"

rule align:
    input: "reference.fa", INDEX, "part_{{k}}.fq"
    output: "part_{{k}}.sam"
    shell: "bwa mem -o {{output}} reference.fa part_{{wildcards.k}}.fq 2> /dev/null"

rule sort:
    input: "part_{{k}}.sam"
    output: "part_{{k}}.bam"
    shell: "samtools sort -o {{output}} {{input}} 2> /dev/null"

rule merge:
    input: expand("part_{{k}}.bam", k=PARTS)
    output: "merged.bam"
    shell: "samtools merge {{output}} {{input}}"

rule bai:
    input: "merged.bam"
    output: "merged.bam.bai"
    shell: "samtools index {{input}}"
"""


def jobs() -> list[Job]:
    found = [
        Job("index", "bwa index", ("reference.fa",), INDEX),
        Job("split", "split -l 16000", ("reads.fq",), tuple(f"part_{k}.fq" for k in PARTS)),
        Job("merge", "samtools merge", tuple(f"part_{k}.bam" for k in PARTS), ("merged.bam",)),
        Job("bai", "samtools index", ("merged.bam",), ("merged.bam.bai",)),
    ]
    for k in PARTS:
        aligned, sam = ("reference.fa", *INDEX, f"part_{k}.fq"), f"part_{k}.sam"
        found.append(Job(f"align {k}", f"bwa mem -o part_{k}.sam", aligned, (sam,)))
        found.append(Job(f"sort {k}", f"samtools sort -o part_{k}.bam", (sam,), (f"part_{k}.bam",)))
    return found


def prepare(folder: Path) -> None:
    make("real/make_sequences.py", folder, "--bases", "400000", "--reads", "16000")
    (folder / "Snakefile").write_text(SNAKEFILE)


WORKFLOW = Workflow(
    name="bwa",
    title="BWA + samtools (Snakemake)",
    needs=("snakemake", "bwa", "samtools"),
    prepare=prepare,
    command=("snakemake", "--cores", "2", "--quiet", "all"),
    jobs=jobs,
    # bwa mem reads the index, never the sequence it was built from.
    not_used=lambda: {(f"align {k}", "reference.fa") for k in PARTS},
    shows=(
        ("reference.fa.bwt", "broadcast"),
        ("part_0.fq", "distribute"),
        ("part_0.sam", "pipeline"),
        ("part_0.bam", "reduce"),
        ("merged.bam", "pipeline"),
    ),
)
