"""Small, unusual Snakemake workflows: constructs in use that annotations could break.

Each is a table of files; `words` are further arguments of Snakemake, `least` the first version that
supports everything in it. They create files below the directory, the same ones each time.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A workflow; `main` is its Snakefile."""

    files: dict[str, str]
    words: tuple[str, ...] = ("-c2",)
    main: str = "Snakefile"
    least: tuple[int, int] = (8, 0)


MODULES = {
    "Snakefile": """
configfile: "config.yaml"
localrules: all, note
wildcard_constraints:
    n = "[0-9]+"
include: "rules/more.smk"
module other:
    snakefile: "other/Snakefile"
    prefix: "inner"
    config: config
use rule * from other as other_*
use rule make from other as made_here with:
    output: "here_{n}.txt"
    params: what="here"
ruleorder: quick > slow
rule all:
    default_target: True
    input: "total.txt", "note.txt", expand("here_{n}.txt", n=[1, 2])
rule note:
    output: "note.txt"
    run:
        for k in range(2):
            shell("echo {k} >> {output}")
rule quick:
    input: "inner/part_{n}.txt"
    output: "one_{n}.txt"
    shell: "tr a-z A-Z < {input} > {output}"
rule slow:
    input: "inner/part_{n}.txt"
    output: "one_{n}.txt"
    shell: "false"
rule total:
    input: a=expand("one_{n}.txt", n=config["numbers"]), t=rules.table.output
    output: "total.txt"
    shell: "cat {input.a} {input.t} > {output}"
""",
    "config.yaml": "numbers: [1, 2, 3]\nwhat: {x: '{braces}'}\n",
    "rules/more.smk": """
rule table:
    output: "table.txt"
    params: lambda w: "a{b}$c"
    script: "../scripts/table.py"
""",
    "scripts/table.py": "open(snakemake.output[0], 'w').write(str(snakemake.params) + '\\n')\n",
    "other/Snakefile": """
rule make:
    output: "part_{n}.txt"
    params: what="there"
    shell: "for i in 1 2; do echo {params.what} {wildcards.n} $i; done > {output}"
""",
}
CHECKPOINTS = {
    "Snakefile": """
import os
def parts(wildcards):
    folder = checkpoints.split.get(**wildcards).output[0]
    names = glob_wildcards(os.path.join(folder, "{i}.txt")).i
    return expand("out_{s}/{i}.up", i=sorted(names), **wildcards)
def reads(wildcards, input, attempt):
    return len(str(input)) % 5 + attempt
rule all:
    input: expand("sum_{s}.txt", s=["a", "b"])
checkpoint split:
    input: lambda w: f"in_{w.s}.txt"
    output: directory("parts_{s}")
    shell: "mkdir {output}; for i in 1 2 3; do echo $i > {output}/$i.txt; done"
rule start:
    output: ensure("in_{s}.txt", non_empty=True)
    shell: "echo {wildcards.s} > {output}"
rule up:
    input: "parts_{s}/{i}.txt"
    output: ensure("out_{s}/{i}.up", sha256=lambda w: SUMS[w.i])
    resources: odd=reads
    shell: "sed 's/^/up /' {input} > {output}"
import hashlib
SUMS = {str(i): hashlib.sha256(f"up {i}\\n".encode()).hexdigest() for i in (1, 2, 3)}
rule sum:
    input: unpack(lambda w: {"s": f"in_{w.s}.txt"}), parts
    output: "sum_{s}.txt", touch("done_{s}")
    shell: "cat {input} > {output[0]}"
"""
}
SCATTER = {
    "Snakefile": """
scattergather:
    split=3
rule all:
    input: "all.txt", "kept.txt", "alone_1.txt"
rule seed:
    output: temp("seed.txt")
    group: "first"
    shell: "seq 9 > {output}"
rule split:
    input: "seed.txt"
    output: scatter.split("cut/{scatteritem}.txt")
    group: "first"
    shell:
        "mkdir -p cut; i=0; for f in {output}; do i=$((i+1)); "
        "awk -v i=$i 'NR%3==i%3' {input} > $f; done"
rule work:
    input: "cut/{scatteritem}.txt"
    output: temp("work/{scatteritem}.txt")
    log: "log/{scatteritem}.log"
    benchmark: "bench/{scatteritem}.tsv"
    shadow: "minimal"
    threads: 2
    shell: "sort -rn {input} > {output}; echo ok > {log}"
rule gather:
    input: gather.split("work/{scatteritem}.txt")
    output: protected("kept.txt")
    shell: "cat {input} > {output}"
rule last:
    input: ancient("kept.txt"), deep=lambda w: ["seed.txt"]
    output: "all.txt"
    priority: 5
    shell: "cat {input} > {output}"
rule alone:
    input: "kept.txt"
    output: report("alone_{x}.txt", caption="c.rst"), multiext("more_{x}", ".a", ".b")
    retries: 1
    shell: "cp {input} {output[0]}; echo 1 > {output[1]}; echo 2 > {output[2]}"
""",
    "c.rst": "a caption\n",
}
PIPES = {
    "Snakefile": """
rule all:
    input: "b.txt", "served_1.txt", "served_2.txt"
rule make:
    output: pipe("a.{n}.pipe")
    shell: "seq 5 > {output}"
rule take:
    input: "a.1.pipe"
    output: "b.txt"
    shell: "sort -rn < {input} > {output}"
rule server:
    output: service("place.sock")
    shell: "echo there > {output}; sleep 600"
rule served:
    input: "place.sock"
    output: "served_{n}.txt"
    shell: "cat {input} > {output}"
"""
}
SHELLS = {
    "Snakefile": """
shell.executable("dash")
shell.prefix("NAME=x{{y}}; export NAME; nice -n 1 ")
onstart:
    shell("echo started > started.txt")
rule all:
    input: expand("s_{k}.txt", k=range(3)), "bash.txt", "long.txt", "read.txt", "strict.txt"
rule plain:
    output: "s_{k}.txt"
    shell: "env | grep ^NAME= > {output}"
rule other:
    output: "bash.txt"
    resources: shell_exec="bash"
    shell: "true; [[ a == a ]] && echo $BASH_VERSINFO | wc -l > {output}"
rule long:
    output: "long.txt"
    params: "x" * 70000
    shell: "echo {params} | wc -c > {output}"
rule read:
    output: "read.txt"
    run:
        lines = list(shell("seq 3", iterable=True))
        open(output[0], "w").write(shell("echo $NAME", read=True) + str(lines))
rule strict:
    output: "strict.txt"
    shell: r'''true
cat > {output} <<'END'
a 'quoted' "text" $1 `x` \\n
END
'''
"""
}
PROFILE = {
    "workflow/Snakefile": """
from pathlib import Path
rule all:
    input: "sum.txt"
rule one:
    output: "one_{n}.txt"
    params: tool=Path(workflow.basedir) / "tool.sh"
    shell: "sh {params.tool} {wildcards.n} > {output}"
rule sum:
    input: expand("one_{n}.txt", n=[1, 2])
    output: "sum.txt"
    resources: slurm_extra="--nice", mem_mb=lambda w, attempt: 10 * attempt
    script: "scripts/sum.py"
""",
    "workflow/tool.sh": "echo tool $1\n",
    "workflow/scripts/sum.py": "open(snakemake.output[0], 'w').write(''.join("
    "open(p).read() for p in snakemake.input))\n",
    "workflow/profiles/default/config.yaml": """
cores: 2
quiet: all
default-resources: [slurm_extra="'--comment=x'", mem_mb=50]
set-threads: {one: 1}
groups: {one: both}
group-components: {both: 2}
""",
    "global/config.yaml": "printshellcmds: true\nset-resources: {sum: {mem_mb: 20}}\n",
}
FLAGS = {
    "Snakefile": """
inputflags:
    access.sequential
rule all:
    input: "c.txt"
rule a:
    output: temp("a.txt", group_jobs=True)
    shell: "seq 3 > {output}"
rule b:
    input: access.random("a.txt")
    output: update("b.txt")
    shell: "cat {input} >> {output}"
rule c:
    input: "b.txt"
    output: "c.txt"
    shell: "cat {input} > {output}"
"""
}
CASES = {
    "modules": Case(MODULES),
    "checkpoints": Case(CHECKPOINTS),
    "scatter": Case(SCATTER),
    "pipes": Case(PIPES, ("-c4",)),
    "shells": Case(SHELLS),
    "profile beside": Case(PROFILE, (), "workflow/Snakefile"),
    "two profiles": Case(PROFILE, ("--profile", "global"), "workflow/Snakefile"),
    "flags": Case(FLAGS, least=(9, 27)),
}
