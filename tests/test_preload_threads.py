"""Multi-threaded programs with the preload library: the programs they start, and their reads."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from tests.support.preload import compiled
from tests.test_preload_record import pytestmark as _recorded_at_all
from tests.test_preload_record import recorded
from tracehint.schemas.store import Bundle

pytestmark = _recorded_at_all


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
    """Regression: the time of another thread's fork was attributed to this thread's fork."""
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
    """Return the bytes of each file that concurrent children of vfork write, and the losses."""
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
    assert lost >= 2 * sum(size < 3005 for size in found)  # at least its open and its write


READERS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#define THREADS 100
#define FILES 200
static int all[FILES];
static pthread_barrier_t barrier;
static void *work(void *number)
{
	char bytes[100];
	for (int file = 0; file < FILES; file++) {
		pthread_barrier_wait(&barrier);
		for (int piece = 0; piece < 5; piece++)
			if (pread(all[file], bytes, 100, (long)number * 1000 + piece * 100) != 100)
				return &barrier;
	}
	return NULL;
}
int main(void)
{
	pthread_t threads[THREADS];
	char name[32];
	long bad = 0;
	for (int file = 0; file < FILES; file++) {
		snprintf(name, sizeof(name), "in%d", file);
		all[file] = open(name, O_CREAT | O_RDWR, 0644);
		if (ftruncate(all[file], THREADS * 1000))
			return 2;
	}
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 3;
	for (long i = 0; i < THREADS; i++) {
		void *found;
		pthread_join(threads[i], &found);
		bad += found != NULL;
	}
	return bad != 0;
}
"""


def test_a_hundred_threads_that_read_the_same_files_are_told_apart(tmp_path: Path) -> None:
    """Regression: two threads in one table slot shared an episode and lost one of their reads."""
    bundle = recorded(tmp_path, compiled(tmp_path, "readers", READERS, "-pthread"))
    names = {row["file"]: Path(os.fsdecode(row["path"])).name for row in rows_of(bundle, "names")}
    pieces: dict[str, list[int]] = {}
    for row in rows_of(bundle, "extents"):
        if row["op"] == "read" and (name := names.get(row["file"], "")).startswith("in"):
            for start in range(row["count"]):
                begin = row["start"] + start * row["stride"]
                pieces.setdefault(name, []).extend(range(begin, begin + row["length"], 100))
    expected = [thread * 1000 + piece * 100 for thread in range(100) for piece in range(5)]
    assert len(pieces) == 200
    assert [name for name, found in pieces.items() if sorted(found) != expected] == []
    assert bundle.tables["losses"].num_rows == 0


ENDING = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *work(void *number)
{
	char name[32];
	snprintf(name, sizeof(name), "out%ld", (long)number);
	for (;;) {
		int fd = open(name, O_CREAT | O_WRONLY, 0644);
		if (fd < 0 || write(fd, "x", 1) != 1)
			return NULL;
		close(fd);
	}
}
int main(void)
{
	pthread_t thread;
	for (long i = 0; i < 8; i++)
		if (pthread_create(&thread, NULL, work, (void *)i))
			return 2;
	usleep(1500);
	return 0; /* while the threads write and close */
}
"""


def test_a_program_ends_while_its_threads_close_files(tmp_path: Path) -> None:
    """The final sizes of open files are read at exit: a file closed at that moment ended the
    program with SIGSEGV, once in 25 runs."""
    program = compiled(tmp_path, "ending", ENDING, "-pthread")
    loop = 'for i in $(seq 100); do "$0" || exit 3; done'
    assert recorded(tmp_path, "sh", "-c", loop, program).manifest.exit_status == 0


CLOSED = r"""
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static volatile int last = -1, ended, failed;
static void *work(void *unused)
{
	char byte;
	while (!ended)
		failed = pread(last, &byte, 1, 0) != 1;
	return NULL;
}
int main(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 2;
	for (int i = 0; i < 40000; i++) {
		last = open("in", O_RDONLY);
		close(last);
	}
	ended = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


def test_a_file_is_closed_while_another_thread_reads_it(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"x")
    program = compiled(tmp_path, "closed", CLOSED, "-pthread")
    loop = 'for i in $(seq 4); do "$0" || exit 3; done'
    assert recorded(tmp_path, "sh", "-c", loop, program).manifest.exit_status == 0


def test_the_recording_is_open_under_a_high_number_only(tmp_path: Path) -> None:
    """A thread that closes a descriptor twice closes a low number; the library would write to the
    file that is opened next."""
    log = tmp_path / "calls"
    calls = "trace=openat,fcntl,close,mmap"
    recorded(tmp_path, "strace", "-f", "-qq", "-e", calls, "-o", str(log), "true")
    (low,) = re.findall(r"openat\(.*/spool/arena\".* = (\d+)\n", log.read_text())
    after = log.read_text().partition("/spool/arena")[2].splitlines()[1:4]
    high = re.search(rf"fcntl\({low}, F_DUPFD_CLOEXEC, \d+\) += (\d+)", after[0])
    assert high is not None and int(high[1]) >= 60, after
    assert f"close({low})" in after[1] and f"MAP_SHARED, {high[1]}, 0)" in after[2], after
