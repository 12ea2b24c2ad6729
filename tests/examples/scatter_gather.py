"""Worked example 2, a scatter and a gather: four workers each read a quarter of big.dat and
write a quarter of out.dat, at the same time; `merge` reads out.dat.

How scatter_gather.json was derived by hand
-------------------------------------------
Edges: split -> big.dat -> each worker, 1,000,000 bytes each; each worker -> out.dat -> merge,
1,000,000 bytes each.

Labels:
    big.dat  n = 4 readers, every byte is read by exactly one: m = 1 <= 1.25: scatter. A
             shared header would be in the first min(128 KiB, 400,000) bytes and be read by
             90 % of the readers; one of four reads them: none. Regions of 1,000,000 bytes,
             1,000,000 apart; starts 0, 1e6, 2e6, 3e6; 1,000,000 = 64 * 15,625: aligned to 64.
             One producer but four consumers: no pipeline.
    out.dat  four producers own 1,000,000 bytes each and no byte was written twice: gather,
             all four at the same time. One consumer, but a reduce needs a group of files.
    result.dat  stage-out.

Nodes: four tasks at the same time: N = 4.

Costs with N = 4, striped:
    big.dat  s = 4e6, n = 4, u = 1e6: network 3/4 (4e6 + 4e6) = 6e6, waiting max(1e6, 4e6/4) = 1e6
             blocks in regions, at their readers: network 3/4 * 4e6 = 3e6, waiting 0: saves 3e6
    out.dat  s = 4e6, n = 1, u = 4e6: network 3/4 * 8e6 = 6e6, waiting max(4e6, 1e6) = 4e6
             regions where merge will run, at one of the workers, which wrote 1/4 of it:
             network 3/4 * 4e6 = 3e6, waiting 0: saves 3e6
    result.dat  s = 100,000, n = 0: network 75,000, waiting 0
"""

from __future__ import annotations

from tests.support.bundles import RunBuilder, ns

PART = 1_000_000


def build() -> RunBuilder:
    run = RunBuilder(ended_ns=ns(31))
    shell = run.process(["sh", "wf.sh"], start=0, end=31)
    split = run.process(["split", "big.dat"], parent=shell, start=1, end=3)
    big = run.file("/data/big.dat", existed=False, size=4 * PART)
    out = run.file("/data/out.dat", existed=False, size=4 * PART)
    result = run.file("/data/result.dat", existed=False, size=100_000)
    run.write(split, big, 0, 4 * PART, at=1.5, until=2.5)
    for k in range(4):
        work = run.process(["work", str(k)], parent=shell, start=10, end=20)
        run.read(work, big, k * PART, (k + 1) * PART, at=11, until=14)
        run.write(work, out, k * PART, (k + 1) * PART, at=15, until=18)
    merge = run.process(["merge", "out.dat"], parent=shell, start=25, end=30)
    run.read(merge, out, 0, 4 * PART, at=26, until=27)
    run.write(merge, result, 0, 100_000, at=28, until=29)
    return run
