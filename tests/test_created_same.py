"""With the tagger a program behaves as without it: exit code, messages, files; in a table.

Each line runs twice in a fresh folder of the same name, without and with a hint for every file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.creation import Tagged
from tests.support.hints import hint_file, rule

pytestmark = pytest.mark.slow

PY = sys.executable
# name -> shell text; a.txt (lines), b.bin (bytes) and d/ exist. No output may contain times.
PROGRAMS = {
    "true": "true", "false": "false", "an unknown program": "no-such-program", "exit": "exit 41",
    "a signal": "kill -SEGV $$", "a child's signal": "sh -c 'kill -9 $$'; echo $?",
    "cat": "cat a.txt nowhere >c.txt", "cp": "cp -a a.txt c.txt; cp -r d e; cp nowhere f",
    "mv": "cp a.txt c; mv c d/c; mv nowhere x", "rm": "cp a.txt c; rm c; rm c",
    "ln": "ln -s a.txt l; ln a.txt h; ln a.txt h", "mkdir": "mkdir -p x/y; mkdir x",
    "touch": "touch -d @1000000000 c; touch nowhere/c", "truncate": "truncate -s 5000 c",
    "install": "install -m 751 a.txt c", "dd": "dd if=b.bin of=c bs=100 count=7 status=none",
    "tee": "tee c d/e <a.txt; tee nowhere/x <a.txt", "split": "split -l 40 a.txt part.",
    "sort": "sort -o c a.txt; sort -c a.txt", "uniq": "uniq -c a.txt c",
    "tr": "tr a-z A-Z <a.txt >c",
    "sed": "cp a.txt c; sed -i.old s/line/row/ c; sed -i s/x/ c", "awk": "awk '{print > $2}' a.txt",
    "grep": "grep 7 a.txt >c; grep nothing a.txt", "find": "find . -name '*.txt' | sort >c",
    "xargs": "seq 1 20 | xargs -P2 -I{} sh -c 'echo {} >n{}'", "wc": "wc a.txt b.bin",
    "cmp": "cp b.bin c; echo 1 >>c; cmp b.bin c", "diff": "sed s/7/8/ a.txt >c; diff a.txt c",
    "patch": "sed s/7/8/ a.txt >c; diff a.txt c >p; cp a.txt x; patch -s x p; cmp x c",
    "tar": "tar cf c.tar --mtime=@0 --owner=x --group=x a.txt d; mkdir e; tar xf c.tar -C e; "
           "tar xf a.txt",
    "gzip": "gzip -nk a.txt; gzip -t a.txt.gz; gzip -t a.txt",
    "bzip2": "bzip2 -k b.bin; bzip2 -d a.txt",
    "xz": "xz -k -T1 b.bin; xz -t b.bin.xz", "od": "od b.bin >c",
    "sha256sum": "sha256sum * >c; sha256sum -c c",
    "bash": "bash -c 'set -o noclobber; echo 1 >c; echo 2 >c'; bash -c 'echo {1..9} &>d/x; exit 3'",
    "closed streams": "(exec 0<&- 1>&- 2>&-; echo 1 >c; cat a.txt >d/c); ls c d",
    "many descriptors": "ulimit -n 12; exec 7>c 8>d/e; echo 1 >&7; echo 2 >&8; cat <a.txt >f",
    "a limit on sizes": "ulimit -f 1; dd if=/dev/zero of=c bs=1000 count=9 status=none",
    "no permission": "chmod 500 d; umask 077; echo 1 >c; echo 1 >/proc/version",
    "an empty environment": "env -i sh -c 'echo 1 >c; env | grep ^PWD'",
    "the environment": "env | grep -c PATH=; printenv HOME",
    "perl": "perl -e 'open(F, \">c\"); print F 1'",
    "python": f"{PY} -c 'import os; print(open(\"c\", \"x\"), os.listdir()); open(\"c\", \"x\")' "
              "2>&1 | sort",
    "python subprocess": f"{PY} -c \"import subprocess as s; print(s.run(['cp', 'a.txt', 'c']))\"",
    "python sqlite": f"{PY} -c \"import sqlite3; c = sqlite3.connect('c'); "
                     "c.execute('create table t(a)'); c.execute('insert into t values (1)'); "
                     "c.commit(); print(c.execute('select * from t').fetchall())\"",
    "make": "printf 'c: a.txt\\n\\tcp a.txt c\\nd/x: c nowhere\\n\\tfalse\\n' >m; make -f m; "
            "make -f m d/x",
    "git": "git init -q r 2>/dev/null; cd r; cp ../a.txt .; git add .; git status --short; "
           "git stash",
    "gcc": "echo 'int main(void) { return 7; }' >p.c; gcc -o p p.c && ./p; echo $?; gcc nowhere.c",
    "openssl": "openssl dgst -sha1 a.txt; openssl dgst nowhere 2>/dev/null",
    "samtools": "samtools view a.txt",
    "flock": "flock c sh -c 'echo 1 >>c'; flock -n c true", "timeout": "timeout 0.2 sleep 9",
    "fifo": "mkfifo p; (cat a.txt >p &); cat p >c", "stat": "echo 1 >c; stat -c '%s %a %h %F %u' c",
    "here": "cat <<X >c\nabc\nX\ncat c", "du": "echo 1 >c; wc -c c; test -s c; test -x c",
}  # fmt: skip  # a table


def fresh(folder: Path) -> None:
    subprocess.run(["chmod", "-R", "u+rwx", folder], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "d").mkdir(parents=True)
    (folder / "a.txt").write_text("".join(f"line n{i}\n" for i in range(100)))
    (folder / "b.bin").write_bytes(bytes(range(256)) * 40)
    (folder / "d" / "one").write_text("1")


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Map every name below the folder to its mode, link count and content or link target."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if ".git" in path.parts:
            continue
        facts, name = path.lstat(), os.fspath(path.relative_to(folder))
        if path.is_symlink():
            found[name] = (facts.st_mode, facts.st_nlink, os.fsencode(path.readlink()))
        elif path.is_file():
            found[name] = (facts.st_mode, facts.st_nlink, path.read_bytes())
        else:
            found[name] = (facts.st_mode, 0, b"")
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_does_as_without_hints(program: str, library: Path, tmp_path: Path) -> None:
    hints = hint_file(rule("{dirs}{name}", DP="local", Replication="2"))
    folder = tmp_path / "w"
    fresh(folder)
    tagged = Tagged(library, tmp_path, hints, root=folder)
    ends = []
    for env in (dict(os.environ), tagged.environment()):
        fresh(folder)
        done = subprocess.run(
            ["sh", "-c", PROGRAMS[program]], cwd=folder, env=env, capture_output=True
        )
        ends.append((done.returncode, done.stdout, done.stderr, tree(folder)))
    assert ends[0] == ends[1]


def test_there_are_forty_programs_and_each_file_is_hinted(library: Path, tmp_path: Path) -> None:
    assert len(PROGRAMS) >= 40
    tagged = Tagged(library, tmp_path, hint_file(rule("{dirs}{name}", DP="local")))
    fresh(tagged.root)
    tagged.run("sh", "-c", PROGRAMS["xargs"])
    assert all(tagged.hints(f"n{i}") == {"user.DP": b"local"} for i in range(1, 21))
