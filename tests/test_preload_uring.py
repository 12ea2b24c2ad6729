"""The preload collector and io_uring: what answers tell, and what they leave open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import tracehint
from tests.support.preload import compiled
from tracehint.collectors.preload import PreloadCollector
from tracehint.schemas.store import Bundle, read_bundle

_CHECK = PreloadCollector().check()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not _CHECK.usable, reason=_CHECK.reason)]

HEADER = Path(__file__).parent / "workloads"

PROGRAM = r"""
#include "ring.h"
#include <stdio.h>
#include <sys/wait.h>

static char room[65536];
static struct ring r;

void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static void tagged(int op, int fd, unsigned int len, long offset, unsigned long tag)
{
	unsigned int i = *r.sq_tail & *r.sq_mask;

	put(&r, op, fd, room, len, offset, 0);
	r.sqes[i].user_data = tag;
}

/* Submits all and takes `n` answers, whatever they are. */
static void take(unsigned int n)
{
	unsigned int flags = IORING_ENTER_GETEVENTS;

	must(syscall(SYS_io_uring_enter, r.fd, n, n, flags, NULL, 0) == (long)n, "enter");
	__atomic_store_n(r.cq_head, *r.cq_head + n, __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600), only = open("f", O_RDONLY);
	int closed, held = open("g", O_RDWR | O_CREAT, 0600);

	(void)argc;
	must(write(fd, room, 10000) == 10000, "write");
	int polled = !strncmp(argv[1], "polled", 6);

	if (ring_open(&r, polled ? IORING_SETUP_SQPOLL : 0))
		return 77;
	if (polled) {
		int often = argv[1][6], n = often == 's' ? 100 : 40;

		/* without a call but to wake the kernel; a file of the same number after each */
		for (int i = 0; i < n; i++) {
			unsigned int head = *r.cq_head;

			tagged(IORING_OP_READ, fd, 100, i * 100, (unsigned long)i);
			while (__atomic_load_n(r.cq_tail, __ATOMIC_ACQUIRE) == head)
				if (*r.sq_flags & IORING_SQ_NEED_WAKEUP)
					syscall(SYS_io_uring_enter, r.fd, 1, 0,
						IORING_ENTER_SQ_WAKEUP, NULL, 0);
			__atomic_store_n(r.cq_head, head + 1, __ATOMIC_RELEASE);
			if (often != 's') {
				close(fd);
				must(open(i % 2 ? "f" : "g", O_RDWR) == fd, "number");
				if (!(i % 2))
					must(ftruncate(fd, 10000) == 0, "truncate");
			}
		}
	} else if (!strcmp(argv[1], "short")) {
		tagged(IORING_OP_READ, fd, 5000, 8000, 1); /* 2000 are there */
		tagged(IORING_OP_WRITE, only, 100, 0, 2);  /* fails */
		tagged(IORING_OP_READ, fd, 100, 50000, 3); /* nothing there */
		tagged(IORING_OP_NOP, -1, 0, 0, 4);
		take(4);
	} else if (!strcmp(argv[1], "same")) {
		tagged(IORING_OP_READ, fd, 1000, 0, 7);
		tagged(IORING_OP_READ, fd, 2000, 4000, 7);
		take(2);
	} else if (!strcmp(argv[1], "wrong")) {
		r.sq_array[*r.sq_tail & *r.sq_mask] = 999; /* no such request: dropped */
		__atomic_store_n(r.sq_tail, *r.sq_tail + 1, __ATOMIC_RELEASE);
		syscall(SYS_io_uring_enter, r.fd, 1, 0, 0, NULL, 0);
		tagged(IORING_OP_READ, fd, 100, 300, 1);
		take(1);
	} else if (!strcmp(argv[1], "many")) {
		for (int i = 0; i < 5000; i++) {
			tagged(IORING_OP_WRITE, held, 10, i * 10, (unsigned long)i);
			take(1);
		}
	} else if (!strcmp(argv[1], "child")) {
		pid_t pid = fork();

		if (!pid) {
			tagged(IORING_OP_READ, fd, 100, 0, 1);
			take(1);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	} else if (!strcmp(argv[1], "reused")) {
		for (int i = 0; i < 20; i++) {
			tagged(IORING_OP_READ, fd, 100, i * 100, 1);
			take(1);
			close(r.fd);
			must(!ring_open(&r, 0), "ring");
		}
	} else {
		tagged(IORING_OP_OPENAT, AT_FDCWD, 0, 0, 1);
		r.sqes[0].addr = (unsigned long)"f";
		take(1);
	}
	closed = close(held);
	return closed;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program above."""
    return compiled(tmp_path_factory.mktemp("uring"), "rings", PROGRAM, "-I", str(HEADER))


def recorded(program: Path, folder: Path, what: str) -> Bundle:
    """A recording of one part of the program."""
    words = ("record", "--quiet", "--collector", "preload", "-o", "run.trace", "--")
    done = tracehint(*words, program, what, cwd=folder)
    if done.returncode == 77:
        pytest.skip("io_uring is not allowed here")
    assert done.returncode == 0, done.stderr
    return read_bundle(folder / "run.trace")


def runs(bundle: Bundle) -> list[tuple[str, int, int, bool]]:
    """Operation, start, bytes and whether that is inexact, of all requests."""
    rows: list[dict[str, Any]] = bundle.tables["extents"].to_pylist()
    mine = [row for row in rows if row["how"] == "io_uring"]
    return sorted((r["op"], r["start"], r["bytes"], not r["exact"]) for r in mine)


def unknown(bundle: Bundle) -> int:
    """Calls and requests that were counted only."""
    rows = bundle.tables["losses"].to_pylist()
    return sum(row["count"] for row in rows if row["kind"] == "unknown_calls")


def test_the_answer_tells_how_much(program: Path, tmp_path: Path) -> None:
    bundle = recorded(program, tmp_path, "short")
    assert runs(bundle) == [("read", 8000, 2000, False)]
    assert unknown(bundle) == 0


def test_answers_that_cannot_be_told_apart_have_an_inexact_place(
    program: Path, tmp_path: Path
) -> None:
    found = runs(recorded(program, tmp_path, "same"))
    assert [(start, n) for _, start, n, _ in found] == [(0, 1000), (4000, 2000)]
    assert found[0][3] or found[1][3]


def test_a_place_that_the_kernel_does_not_take_is_no_request(program: Path, tmp_path: Path) -> None:
    assert runs(recorded(program, tmp_path, "wrong")) == [("read", 300, 100, False)]


def test_more_requests_than_are_remembered_in_turn(program: Path, tmp_path: Path) -> None:
    found = runs(recorded(program, tmp_path, "many"))
    assert sum(n for _, _, n, _ in found) == 50_000
    assert not any(inexact for *_, inexact in found)


def test_rings_that_take_the_place_of_others(program: Path, tmp_path: Path) -> None:
    found = runs(recorded(program, tmp_path, "reused"))
    assert sum(n for _, _, n, _ in found) == 2000


def test_requests_that_the_kernel_takes_by_itself(program: Path, tmp_path: Path) -> None:
    """They are read before the descriptor that they name is closed, so each is its own file's."""
    bundle = recorded(program, tmp_path, "polled")
    assert runs(bundle) and sum(n for _, _, n, _ in runs(bundle)) == 40 * 100
    paths = {row["open"]: row["path"] for row in bundle.tables["opens"].to_pylist()}
    rows = [row for row in bundle.tables["extents"].to_pylist() if row["how"] == "io_uring"]
    found = sorted((row["start"], paths[row["open"]].rpartition(b"/")[2]) for row in rows)
    assert found == [(i * 100, b"g" if i % 2 else b"f") for i in range(40)]
    assert unknown(bundle) == 0


def test_requests_that_were_overwritten_before_a_call_are_counted(
    program: Path, tmp_path: Path
) -> None:
    bundle = recorded(program, tmp_path, "polleds")
    lost = [r for r in bundle.tables["losses"].to_pylist() if r["kind"] == "extent_records"]
    seen = sum(n for _, _, n, _ in runs(bundle)) // 100
    assert seen + sum(row["count"] for row in lost) >= 100, (seen, lost)
    if lost:  # or the kernel slept, and was woken by calls before anything was overwritten
        assert any(inexact for *_, inexact in runs(bundle))


@pytest.mark.parametrize("what", ["child", "open"])
def test_what_is_not_looked_into_is_counted(program: Path, tmp_path: Path, what: str) -> None:
    bundle = recorded(program, tmp_path, what)
    assert runs(bundle) == []
    assert unknown(bundle) == 1


THREADS = r"""
#include "ring.h"
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

static char room[6][128];
static struct ring common;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

/* 40 rings of its own, then one that all use in turn; children that never use them. */
static void *work(void *number)
{
	long id = (long)number;
	char name[20];
	struct ring own;

	snprintf(name, sizeof(name), "of%ld", id);
	int fd = open(name, O_RDWR | O_CREAT, 0600);

	for (int k = 0; k < 40; k++) {
		must(!ring_open(&own, 0), "ring");
		for (int i = 0; i < 8; i++)
			put(&own, IORING_OP_WRITE, fd, room[id], 128, (k * 8 + i) * 128, 0);
		go(&own, 8, 128);
		close(own.fd);
		pid_t pid = k % 10 ? -1 : fork();

		if (!pid)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	for (int k = 0; k < 100; k++) {
		pthread_mutex_lock(&lock);
		put(&common, IORING_OP_READ, fd, room[id], 128, k * 128, 0);
		go(&common, 1, 128);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[6];

	if (ring_open(&common, 0))
		return 77;
	for (long i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


def test_threads_with_rings_of_their_own_and_one_of_all(tmp_path: Path) -> None:
    program = compiled(tmp_path, "threads", THREADS, "-pthread", "-I", str(HEADER))
    bundle = recorded(program, tmp_path, "")
    found = runs(bundle)
    assert sum(n for op, _, n, _ in found if op == "write") == 6 * 40 * 8 * 128
    assert sum(n for op, _, n, _ in found if op == "read") == 6 * 100 * 128
    assert not any(inexact for *_, inexact in found)
    assert bundle.tables["losses"].num_rows == 0
