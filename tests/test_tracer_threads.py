"""eBPF and programs of many threads, which reuse the numbers of closed descriptors immediately."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.cli import record
from tests.support.ebpf import require_ebpf
from tests.support.preload import compiled
from tracehint.schemas.store import read_bundle

pytestmark = pytest.mark.ebpf

REUSED = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define THREADS 40
#define FILES 8
static atomic_long got[FILES];
static pthread_barrier_t barrier;
static void *work(void *number)
{
	unsigned int seed = (unsigned int)(long)number;
	char bytes[1000], name[16];
	pthread_barrier_wait(&barrier);
	for (int step = 0; step < 150; step++) {
		int file = rand_r(&seed) % FILES, length = 1 + rand_r(&seed) % 900;
		snprintf(name, sizeof(name), "in%d", file);
		int fd = open(name, O_RDONLY);
		for (int i = 0; i < 4; i++)
			got[file] += read(fd, bytes, (size_t)length);
		close(fd);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	char name[16];
	for (int held = argc > 1 ? atoi(argv[1]) : 0; held; held--)
		open("/dev/null", O_RDONLY);
	for (int file = 0; file < FILES; file++) {
		snprintf(name, sizeof(name), "in%d", file);
		int fd = open(name, O_CREAT | O_WRONLY, 0644);
		if (ftruncate(fd, 10000) || close(fd))
			return 2;
	}
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 3;
	for (long i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int file = 0; file < FILES; file++)
		printf("in%d %ld\n", file, (long)got[file]);
	return 0;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("held", [0, 60])
def test_a_descriptor_that_another_thread_gets_before_its_close_returns(
    held: int, tmp_path: Path
) -> None:
    """Regression: the close ended the episode of the new file, which lost reads and names. `held`:
    number of lower descriptors, so that these are among those found by a search."""
    require_ebpf()
    program = compiled(tmp_path, "reused", REUSED, "-pthread")
    done = record(program, str(held), collector="ebpf", options="", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    bundle = read_bundle(tmp_path / "run.trace")
    read = Counter[str]()
    for row in bundle.tables["opens"].to_pylist():
        read[Path(row["path"].decode()).name] += row["read_bytes"]
    expected = {name: int(size) for name, size in map(str.split, done.stdout.splitlines())}
    # a busy machine may lose some records, and states that
    lost = bundle.tables["losses"].to_pylist()
    assert lost or {name: read[name] for name in expected} == expected
