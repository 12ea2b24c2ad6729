"""Worked example 3, an append loop with a retry, and an append after a read.

Tasks append 100,000 bytes each to log.txt, one after another. The second is killed in the
middle (50,000 bytes); its retry starts at the same offset and overwrites them. `report`
reads the log. Then a fourth record is appended, and `archive` reads the log again.

How append_retry.json was derived by hand
-----------------------------------------
Tasks: the killed `append log.txt two` and the one after it with the same command are attempts
1 and 2 of one task.

Versions: log.txt gets a new version when `append log.txt four` writes after `report` has read.
    version 0: bytes 0-100,000 of one, 100,000-200,000 of two (attempt 2), 200,000-300,000 of
        three. Attempt 1 is superseded, as all its bytes were overwritten: no edge.
    version 1: four writes 300,000-400,000. Bytes that were not rewritten keep their last
        writers: one, two and three still own theirs (how: carried; no bytes and
        no times: those are listed at version 0).

Edges: one, two (attempt 2), three -> version 0 -> report, 100,000 bytes each;
       one, two (attempt 2), three, four -> version 1 -> archive, 100,000 bytes each.

Labels: both versions have several owners, and no two wrote the same byte: gather, in
turn, each at the previous one's end. Starts 0, 100,000, 200,000 (300,000); 100,000 =
32 * 3,125: aligned to 32. One consumer each, but one file each: no reduce.
report.txt and archive.dat are outputs.

Nodes: tasks never overlap in time: N = 2.

Costs with N = 2, striped:
    version 0  s = u = 300,000, n = 1: network 1/2 * 600,000 = 300,000, waiting 300,000
               on one node with the consumer: half of it, 150,000, is sent from other nodes
               (1/N = 1/2 is more than the largest writer's third), waiting 0: saves 150,000
    version 1  s = u = 400,000: network 400,000, waiting 400,000; on one node 200,000 and 0
    report.txt 1/2 * 1,000 = 500; archive.dat 1/2 * 400,000 = 200,000; no readers, no hint
"""

from __future__ import annotations

from tests.support.bundles import RunBuilder, ns

RECORD = 100_000


def build() -> RunBuilder:
    run = RunBuilder(ended_ns=ns(80))
    shell = run.process(["sh", "loop.sh"], start=0, end=80)
    log = run.file("/data/log.txt", existed=False, size=4 * RECORD)
    report_file = run.file("/data/report.txt", existed=False, size=1_000)
    archive_file = run.file("/data/archive.dat", existed=False, size=4 * RECORD)

    def append(name: str, start: float, at: int, size: int, signal: int | None = None) -> None:
        task = run.process(
            ["append", "log.txt", name],
            parent=shell,
            start=start,
            end=start + 5,
            exit_code=None if signal else 0,
            signal=signal,
        )
        run.write(task, log, at, at + size, at=start + 1, until=start + 2)

    append("one", 1, 0, RECORD)
    append("two", 10, RECORD, RECORD // 2, signal=9)
    append("two", 20, RECORD, RECORD)
    append("three", 30, 2 * RECORD, RECORD)
    report = run.process(["report", "log.txt"], parent=shell, start=40, end=45)
    run.read(report, log, 0, 3 * RECORD, at=41, until=42)
    run.write(report, report_file, 0, 1_000, at=43, until=43.5)
    append("four", 50, 3 * RECORD, RECORD)
    archive = run.process(["archive", "log.txt"], parent=shell, start=60, end=70)
    run.read(archive, log, 0, 4 * RECORD, at=61, until=62)
    run.write(archive, archive_file, 0, 4 * RECORD, at=63, until=64)
    return run
