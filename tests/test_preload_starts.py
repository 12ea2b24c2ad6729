"""What a start costs below the preload library, and what is remembered of programs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.preload import compiled
from tests.test_preload_record import pytestmark as _recorded_at_all
from tests.test_preload_record import recorded
from tracehint.schemas.store import Bundle

pytestmark = _recorded_at_all


def test_a_program_has_five_mappings_of_ours(tmp_path: Path) -> None:
    """Each is made by every program, and copied by every fork."""
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


AT_ONCE = """
import subprocess, threading
def work(number):
    for step in range(40):
        subprocess.run(["sh", "-c", f"exec cp in out{number}_{step}"], check=True)
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_a_program_that_one_of_several_threads_starts_follows_its_shell(tmp_path: Path) -> None:
    """As engines do: the time of another thread's fork was taken for that of this one."""
    (tmp_path / "in").write_bytes(b"x" * 5000)
    bundle = recorded(tmp_path, sys.executable, "-c", AT_ONCE)
    rows = {row["proc"]: row for row in bundle.tables["processes"].to_pylist()}
    copies = [row for row in rows.values() if row["argv"][:1] == [b"cp"]]
    assert len(copies) == 160
    before = [rows[row["prev"]] for row in copies]
    assert all(row["argv"][:2] == [b"sh", b"-c"] for row in before)
    assert all(rows[row["prev"]]["start_ns"] <= row["start_ns"] for row in before)


VFORKS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_barrier_t barrier;
static void *work(void *number)
{
	char name[32];
	snprintf(name, sizeof(name), "out%ld", (long)number);
	pthread_barrier_wait(&barrier);
	pid_t child = vfork();
	if (!child) {
		usleep(200000); /* until the others are as far */
		int fd = open(name, O_CREAT | O_WRONLY, 0644);
		if (write(fd, "begin", 5) != 5 || dup2(fd, 1) != 1)
			_exit(8);
		execlp("cat", "cat", "in", (char *)0);
		_exit(9);
	}
	int status;
	return waitpid(child, &status, 0) == child && !status ? NULL : &barrier;
}
int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 0, bad = 0;
	pthread_t *all = calloc((size_t)threads, sizeof(*all));
	pthread_barrier_init(&barrier, NULL, (unsigned int)threads);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&all[i], NULL, work, (void *)i))
			return 2;
	for (long i = 0; i < threads; i++) {
		void *found;
		pthread_join(all[i], &found);
		bad += found != NULL;
	}
	return bad != 0;
}
"""


def written_by_children(folder: Path, threads: int) -> tuple[list[int], int]:
    """Bytes of each file that as many children of vfork at once write to, and what was lost."""
    (folder / "in").write_bytes(b"x" * 3000)
    bundle = recorded(folder, compiled(folder, "vforks", VFORKS, "-pthread"), str(threads))
    names = {row["file"]: Path(os.fsdecode(row["path"])).name for row in rows_of(bundle, "names")}
    found: dict[str, int] = {}
    for row in rows_of(bundle, "extents"):
        if row["op"] == "write" and (name := names.get(row["file"], "")).startswith("out"):
            found[name] = found.get(name, 0) + row["bytes"]
    return list(found.values()), sum(row["count"] for row in rows_of(bundle, "losses"))


def rows_of(bundle: Bundle, table: str) -> list[dict[str, Any]]:
    return bundle.tables[table].to_pylist()


def test_what_two_hundred_children_of_vfork_do_at_once_is_seen(tmp_path: Path) -> None:
    assert written_by_children(tmp_path, 200) == ([3005] * 200, 0)


def test_children_of_vfork_that_have_no_place_are_counted(tmp_path: Path) -> None:
    found, lost = written_by_children(tmp_path, 400)
    assert len(found) == 400 and min(found) >= 3000
    assert lost >= 2 * sum(size < 3005 for size in found)  # its open and its write at least
