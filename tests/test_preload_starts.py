"""Start-up cost with the preload library, and the information cached about programs."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.preload import compiled
from tests.test_preload_record import pytestmark as _recorded_at_all
from tests.test_preload_record import recorded

pytestmark = _recorded_at_all


def test_a_program_has_five_mappings_of_ours(tmp_path: Path) -> None:
    """Every program makes each mapping, and every fork copies it."""
    recorded(tmp_path, "sh", "-c", "cat /proc/self/maps > maps")
    subprocess.run(["sh", "-c", "cat /proc/self/maps > plain"], cwd=tmp_path, check=True)
    ours, plain = (len((tmp_path / name).read_text().splitlines()) for name in ("maps", "plain"))
    assert ours - plain <= 5


def test_a_start_makes_few_page_faults(tmp_path: Path) -> None:
    text = "import os, resource, subprocess, sys\nfor _ in range(50): os.waitpid(os.posix_spawn("
    text += "'/bin/true', ['true'], os.environ), 0)\n"
    text += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt / 50)"
    plain = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True)
    recorded(tmp_path, "sh", "-c", 'exec "$0" -c "$1" > faults', sys.executable, text)
    assert float((tmp_path / "faults").read_text()) - float(plain.stdout) < 22


def test_a_program_has_its_name_each_time_it_runs(tmp_path: Path) -> None:
    shutil.copy(compiled(tmp_path, "one", "int main(void) { return 0; }"), tmp_path / "two")
    (tmp_path / "link").symlink_to("one")
    script = tmp_path / "script"
    script.write_text("#!./one\n")
    script.chmod(0o755)
    here = shlex.quote(str(tmp_path))
    calls = "; ".join(f"{here}/{name}" for name in ("one", "link", "two", "script") * 3)
    bundle = recorded(tmp_path, "sh", "-c", f"{calls}; mv two gone; cp one two; {here}/two")
    ran = [row for row in bundle.tables["processes"].to_pylist() if row["argv"]]
    names = {(row["argv"][0], row["exe"]) for row in ran if b"script" not in b" ".join(row["argv"])}
    root = bytes(tmp_path)
    for name, exe in (("one", "one"), ("link", "one"), ("two", "two")):
        assert {e for a, e in names if a == root + b"/" + name.encode()} == {
            root + b"/" + exe.encode()
        }
    assert sum(row["exe"] == root + b"/one" for row in ran) == 9
    assert sum(row["exe"] == root + b"/two" for row in ran) == 4


def test_a_program_that_is_replaced_is_looked_at_again(tmp_path: Path) -> None:
    text = "int main(void) { return 0; }"
    compiled(tmp_path, "dynamic", text)
    compiled(tmp_path, "static", text, "-static")
    program = tmp_path / "program"
    at = shlex.quote(str(program))
    one = f"cp -f %s {at}; {at}; {at};"
    bundle = recorded(
        tmp_path, "sh", "-c", one % "dynamic" + one % "static" + one % "dynamic" + " true"
    )
    found = [r["detail"] for r in bundle.tables["losses"].to_pylist()]
    assert len(found) == 2 and {str(detail).split(":")[0] for detail in found} == {"static"}, found
    ran = [row["argv"] for row in bundle.tables["processes"].to_pylist() if row["argv"]]
    assert sum(argv == [bytes(program)] for argv in ran) == 6


def test_more_programs_than_are_remembered(tmp_path: Path) -> None:
    program = compiled(tmp_path, "one", "int main(void) { return 0; }")
    for number in range(300):
        (tmp_path / f"p{number}").hardlink_to(program)
    run = f"i=0; while [ $i -lt 300 ]; do {shlex.quote(str(tmp_path))}/p$i; i=$((i + 1)); done"
    bundle = recorded(tmp_path, "sh", "-c", f"{run}; {run}")
    ran = [row for row in bundle.tables["processes"].to_pylist() if row["argv"]]
    ours = [(row["argv"], row["exe"]) for row in ran if row["exe"].startswith(bytes(tmp_path))]
    assert len(ours) == 600 and all(argv == [exe] for argv, exe in ours)
    assert bundle.tables["losses"].num_rows == 0
