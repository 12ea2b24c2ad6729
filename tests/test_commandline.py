"""Shell text and command lines: the parser that task types and redaction share."""

from __future__ import annotations

import random
import time

import pytest

from tracehint.analyzer.tasks.describe import describe, type_of_text
from tracehint.schemas.commandline.programs import base_name, script_of, workflow_name
from tracehint.schemas.commandline.shelltext import simple_commands

BWA = "bwa mem ref.fa r1.fq"
TYPES = {
    f"set -e\n# align reads\n{BWA} > a.sam": "bwa",
    f"# align reads\n{BWA}": "bwa",
    f"#!/bin/bash\n#SBATCH -n 4\n{BWA}": "bwa",
    f"set -e # strict mode\n{BWA} # align": "bwa",
    f"cd x # don't stop\n{BWA}": "bwa",
    f'echo "# no comment"; {BWA}': "bwa",
    f"echo a#b; {BWA}": "bwa",
    f"echo $# ${{#x}}; {BWA}": "bwa",
    f"cat > cfg <<E\nsort me\nsamtools x\nE\n{BWA}": "bwa",
    f"cat > cfg <<'END-1'\nsort me\nEND-1\n{BWA}": "bwa",
    f"cat <<-E > cfg\n\tsort me\n\tE\n{BWA}": "bwa",
    f"cat <<A <<B\nsort\nA\nuniq\nB\n{BWA}": "bwa",
    f"cat <<< 'sort; uniq' > x; {BWA}": "bwa",
    f"n=$(grep -c x f); {BWA}": "bwa",
    f"n=`grep -c x f`; {BWA}": "bwa",
    f'd="$(dirname "$(readlink -f "$0")")"; {BWA}': "bwa",
    f"echo $(date; sort x) > log; {BWA}": "bwa",
    f"case $x in a|b) {BWA} ;; c) sort x ;; esac": "bwa",
    f"case $x in (a) : ;; (sort) {BWA} ;; esac": "bwa",
    f"case $x in a) cd y ;;\nsort)\n{BWA} ;;\nesac": "bwa",
    f"[[ -f x && ( -s y || a < b ) ]] && {BWA}": "bwa",
    f"[ -f x ] || exit 1; {BWA}": "bwa",
    f"if [[ $a =~ ^(sort|uniq)$ ]]; then {BWA}; fi": "bwa",
    f"for ((i = 0; i < 3; i++)); do {BWA}; done": "bwa",
    f"((n > 3)) || exit; {BWA}": "bwa",
    f"n=$((1 + (2 << 3))); {BWA}": "bwa",
    f"for f in sort uniq; do\n  {BWA}\ndone": "bwa",
    f"while read -r l; do {BWA}; done < list": "bwa",
    f"die() {{ echo no; exit 1; }}\n{BWA} || die": "bwa",
    f"run () {{ {BWA}; }}; run": "bwa",
    f"( cd x && {BWA} )": "bwa",
    f"2> log {BWA}": "bwa",
    f"> out {BWA} 2>&1": "bwa",
    f"A=1 B='c d' {BWA}": "bwa",
    f"time -p {BWA}": "bwa",
    f"! {BWA}": "bwa",
    f"export PATH=$PATH:/x && \\\n  {BWA}": "bwa",
    f"exec {BWA}": "bwa",
    "bash -c '# sort\nbwa mem x'": "bwa",
    f"printf '%s' \"it's\"; {BWA}": "bwa",
    "x=$(": "",
    "# only a comment": "",
    "cat <<E\nsort": "cat",
    "find . -print0 | xargs -0 bwa mem x | sort": "bwa",
    "xargs -a list cat | bwa index -": "bwa",
    "ls | xargs -n 1 bwa index": "xargs",
    "xargs " * 1200 + "bwa": "xargs",
}


@pytest.mark.parametrize("text", TYPES)
def test_the_type_of_a_text_is_its_first_command(text: str) -> None:
    assert type_of_text(text) == TYPES[text]


@pytest.mark.parametrize("text", [text for text, kind in TYPES.items() if kind])
def test_it_is_the_same_through_a_shell(text: str) -> None:
    assert describe([b"/bin/bash", b"-c", text.encode()]).type == TYPES[text]


SHAPES: dict[str, list[list[str]]] = {
    "a b|c 'd e' && f": [["a", "b"], ["c", "d e"], ["f"]],
    'a "x $(b "y z") w" v': [["b", "y z"], ["a", 'x $(b "y z") w', "v"]],
    "a <(b c) > f": [["b", "c"], ["a", "<(b c)"]],
    "a \\\n b 2>&1 >&- c": [["a", "b", "c"]],
    "a; b & c": [["a"], ["b"], ["c"]],
    "a 'b": [["a", "'b"]],
    'a "b': [["a", '"b']],
    "a $'b\\'c' d": [["a", "b'c", "d"]],
    "a `b c` d": [["b", "c"], ["a", "`b c`", "d"]],
    "a)b": [["a"], ["b"]],
    "<redacted> -p<redacted> x": [["<redacted>", "-p<redacted>", "x"]],
}


@pytest.mark.parametrize("text", SHAPES)
def test_words_are_those_that_bash_makes(text: str) -> None:
    found = list(simple_commands(text))
    assert [[w.value for w in c.words] for c in found] == SHAPES[text]
    for word in (w for c in found for w in c.words):
        assert text[word.start : word.end].strip() == text[word.start : word.end]


def test_pipes_here_documents_and_substitutions_are_linked() -> None:
    echo, docker = simple_commands("echo x | docker login")
    assert docker.source is echo
    (cat,) = simple_commands("cat <<E\na\nb\nE\n")
    assert [h.value for h in cat.here] == ["a\nb\n"]
    inner, outer = simple_commands("PW=$(echo x) run")
    assert (inner.nested, inner.into, outer.nested) == (True, "PW=", False)
    assert outer.words[0].nested
    kinds = [c.kind for c in simple_commands("a # b\nfor x in y; do c; done")]
    assert kinds == ["comment", "command", "head", "command", "command"]


@pytest.mark.slow
def test_any_text_is_read_to_its_end() -> None:
    """Truncated, unbalanced or random text raises nothing and takes linear time."""
    rnd = random.Random(29)
    text = "$( ` ( ) (( )) [[ ]] in; esac ;; <<E E; <<< # a b ${ } | & > é $(( {"
    pieces = [*text.split(), "\\", "'", '"', "\n", "E\n", "case x in ", " "]
    for _ in range(3000):
        text = "".join(rnd.choice(pieces) for _ in range(rnd.randrange(30)))
        for command in simple_commands(text):
            assert all(0 <= w.start <= w.end <= len(text) for w in command.words)
    for piece in pieces:
        began = time.process_time()
        list(simple_commands(piece * (60_000 // len(piece))))
        assert time.process_time() - began < 15, piece  # quadratic work would take minutes


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("python3 -uc text", None),
        ("python3 -m pkg.mod", "pkg.mod"),
        ("perl -F: -lane text", None),
        ("perl -Mre x.pl", "x.pl"),
        ("R CMD BATCH x.R", None),
        ("octave --eval text", None),
        ("php -f x.php", "x.php"),
        ("awk -F: text f", None),
    ],
)
def test_scripts_of_interpreters(line: str, script: str | None) -> None:
    first, *rest = line.split()
    found = script_of(base_name(first), [word.encode() for word in rest])
    assert found == (None if script is None else script.encode())
    assert workflow_name(line.split()) == (script or base_name(first))
