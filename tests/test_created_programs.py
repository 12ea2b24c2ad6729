"""Every program's outputs have their hint before the first byte: observed from outside.

Each row of the table runs twice, as under `tracehint run`: recorded, to learn the names under
which the program creates its files, then with the tagger. Three outputs per row; the kernel waits
for a watcher before each access (tests/support/first_byte.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.built import GO_CACHE
from tests.support.cli import tracehint
from tests.support.creation import Tagged
from tests.support.first_byte import Watch
from tests.support.hints import hint_file, rule
from tracehint.adapters.creation.resolution import made_as, resolution_of
from tracehint.schemas.store import read_bundle

pytestmark = pytest.mark.slow

WANTED = {"user.DP": b"local", "user.Replication": b"2"}
NAMES = tuple(f"out/x{i}.dat" for i in (1, 2, 3))
PY = sys.executable
C = (
    "#include <fcntl.h>\n#include <unistd.h>\nint main(int n, char **a) { int fd = "
    "open(a[1], O_CREAT | O_WRONLY, 0644); return write(fd, a[1], 5) != 5; }\n"
)
GO = 'package main\nimport "os"\nfunc main() { os.WriteFile(os.Args[1], []byte("12345"), 0644) }\n'
RUST = 'fn main() { std::fs::write(std::env::args().nth(1).unwrap(), "12345").unwrap(); }\n'
JAVA = (
    "import java.nio.file.*;\nclass W { public static void main(String[] a) throws Exception {"
    " Files.writeString(Path.of(a[0]), a[0]); } }\n"
)
READ = r"\t0\tr\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\n"
SAM = r"@SQ\tSN:r\tLN:99\n" + f"q1{READ}q2{READ}"

# program -> (what must be installed, what creates $o; $i: input, $n: number, $h: tools' folder)
PROGRAMS: dict[str, tuple[str, str]] = {
    "cp": ("cp", "cp $i $o"),
    "cp -p": ("cp", "cp -p $i $o"),
    "cp --reflink=auto": ("cp", "cp --reflink=auto $i $o"),
    "mv": ("mv", "cp $i made$n; mv made$n $o"),
    "mv from another file system": ("mv", "cp $i $h/away$n; mv $h/away$n $o"),
    "tar": ("tar", "mkdir -p d; cp $i d/x$n.dat; tar cf t$n d/x$n.dat; "
                   "tar xf t$n --transform s/^d/out/"),
    "gzip": ("gzip", "gzip -c $i >$o"),
    "gzip -d": ("gzip", "gzip -c $i >$o.gz; gzip -d $o.gz"),
    "sed -i": ("sed", "cp $i $o; sed -i s/a/b/ $o"),
    "sort -o": ("sort", "sort -o $o $i"),
    "sort -o onto its input": ("sort", "cp $i $o; sort -o $o $o"),
    "install": ("install", "install -m 600 $i $o"),
    "split": ("split", "[ $n != 1 ] || split -n 3 --numeric-suffixes=1 -a 1 "
                       "--additional-suffix=.dat $i out/x"),
    "dd": ("dd", "dd if=$i of=$o status=none"),
    "awk": ("awk", "awk '{print > \"'$o'\"}' $i"),
    "perl -i": ("perl", "cp $i $o; perl -pi -e s/a/b/ $o"),
    "truncate": ("truncate", "truncate -s 100 $o; echo 1 >>$o"),
    "git": ("git", "[ $n != 1 ] || { git init -q g; cd g; mkdir out; cp ../$i out/x1.dat; "
                   "cp ../$i out/x2.dat; cp ../$i out/x3.dat; git add out; "
                   "git -c user.name=x -c user.email=x@x commit -qm x; cd ..; "
                   "git --git-dir=g/.git --work-tree=. checkout -q -f; }"),
    "samtools view": ("samtools", f"printf '{SAM}' >s.sam; samtools view -o $o s.sam"),
    "samtools sort": ("samtools", f"printf '{SAM}' >s.sam; samtools sort -o $o s.sam"),
    "C": ("gcc", "$h/dynamic $o"),
    "static C": ("gcc", "$h/static $o"),
    "Go": ("go", "$h/gop $o"),
    "busybox": ("busybox", "busybox cp $i $o; busybox sh -c 'echo 1 >>'$o"),
    "Rust": ("rustc", "$h/rustp $o"),
    "Java": ("javac", "java -XX:+UseSerialGC -Xshare:auto -cp $h W $o"),
    "Python": ("sh", f"{PY} -c \"open('$o', 'w').write('1')\""),
    "Python tempfile + os.replace": (
        "sh", f"{PY} -c \"import os, tempfile as t; f = t.NamedTemporaryFile(dir='out', "
        "delete=False); f.write(b'1'); f.close(); os.replace(f.name, '$o')\""),
    "Python shutil.copy2": ("sh", f"{PY} -c \"import shutil; shutil.copy2('$i', '$o')\""),
    "Python mmap": (
        "sh", f"{PY} -c \"import mmap; f = open('$o', 'w+b'); f.truncate(9); "
        "mmap.mmap(f.fileno(), 9)[:2] = b'ab'\""),
    "HDF5": ("sh", f"{PY} -c \"import h5py; h5py.File('$o', 'w')['x'] = range(99)\""),
}  # fmt: skip  # a table


# Full runs only: the same calls create the files as in another row.
ALIKE = {
    "cp -p", "cp --reflink=auto", "gzip -d", "sort -o", "install", "awk", "truncate",
    "samtools view", "Rust", "Java",
}  # fmt: skip  # a table
ROWS = [pytest.param(name, marks=[pytest.mark.full] * (name in ALIKE)) for name in PROGRAMS]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled programs that write into the file named by their argument."""
    folder = tmp_path_factory.mktemp("tools")
    for name, text in (("p.c", C), ("p.go", GO), ("p.rs", RUST), ("W.java", JAVA)):
        (folder / name).write_text(text)
    for compiler, *words in (
        ("gcc", "-o", "dynamic", "p.c"), ("gcc", "-static", "-o", "static", "p.c"),
        ("go", "build", "-o", "gop", "p.go"), ("rustc", "-o", "rustp", "p.rs"),
        ("javac", "W.java"),
    ):  # fmt: skip  # a table
        if shutil.which(compiler):
            env = {**os.environ, "GOCACHE": str(GO_CACHE), "CGO_ENABLED": "0"}
            subprocess.run([compiler, *words], cwd=folder, env=env, check=True)
    return folder


def script(program: str, tools: Path) -> tuple[str, ...]:
    """Return a command that runs the row three times; skip if its program is not installed."""
    needs, line = PROGRAMS[program]
    if not shutil.which(needs):
        pytest.skip(f"{needs} is not installed")
    loop = f"set -e; i=in; h={tools}; for n in 1 2 3; do o=out/x$n.dat; {line}; done"
    return "sh", "-c", loop


def fresh(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "out").mkdir(parents=True)
    (folder / "in").write_text("".join(f"line a {i}\n" for i in range(300, 0, -1)))


@pytest.mark.parametrize("program", ROWS)
def test_outputs_of_a_program_have_hints_before_the_first_byte(
    program: str, library: Path, mounted: Path, watch: Watch, tools: Path, tmp_path: Path
) -> None:
    folder, command = mounted / "w", script(program, tools)
    fresh(folder)
    options = ("--collector", "preload", "--quiet", "-o", tmp_path / "r.trace")
    done = tracehint("record", *options, "--", *command, cwd=folder)
    assert done.returncode == 0, done.stderr
    hints = hint_file(rule("out/x{n}.dat", DP="local", Replication="2"))
    bundle = read_bundle(tmp_path / "r.trace")
    more = made_as(bundle, resolution_of(hints, None), [os.fsencode(folder.resolve())])
    fresh(folder)
    tagged = Tagged(library, tmp_path, hint_file(*hints.rules, *more), root=folder)
    tagged.run(*command)
    late = watch.late(folder, dict.fromkeys(NAMES, WANTED))
    assert not late, f"{len(NAMES) - len(late)} of {len(NAMES)} hinted"
