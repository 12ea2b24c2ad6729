"""Worked example 1, a pipeline: `gen` reads in.dat and writes mid.dat, `proc` reads mid.dat.

How pipeline.json was derived by hand
-------------------------------------
Tasks: the shell is the engine, its two children are the tasks.

Roles: in.dat is read and never written: input. mid.dat is written and read by another task:
intermediate. out.dat is written, never read and not deleted: output.

Edges: gen -> mid.dat -> proc, 1,000,000 bytes. No task wrote in.dat: no edge.

Labels: mid.dat has one producer and one consumer that read all of it: pipeline, first and
last link of its chain. in.dat has one consumer: stage-in. out.dat: stage-out.

Nodes: tasks never overlap in time, so N is 2, the minimum.

Costs with N = 2, striped (default network (N-1)/N (s + n u), waiting max(u, n u / N)):
    in.dat   s = u = 500,000, n = 1:   network 1/2 * 1,000,000 = 500,000, waiting 500,000
             local at its reader: 0 and 0, saves 500,000
    mid.dat  s = u = 1,000,000, n = 1: network 1/2 * 2,000,000 = 1,000,000, waiting 1,000,000
             local at its writer: 0 and 0, saves 1,000,000
    out.dat  s = 200,000, n = 0:       network 1/2 * 200,000 = 100,000, waiting 0; no hint

Confidence: all bytes exact, no losses, no threshold near, order certain: every factor is 1.
"""

from __future__ import annotations

from tests.support.bundles import RunBuilder, ns


def build() -> RunBuilder:
    run = RunBuilder(ended_ns=ns(7))
    shell = run.process(["sh", "wf.sh"], start=0, end=7)
    gen = run.process(["gen", "in.dat", "mid.dat"], parent=shell, start=1, end=3)
    proc = run.process(["proc", "mid.dat", "out.dat"], parent=shell, start=4, end=6)
    source = run.file("/data/in.dat", existed=True, size=500_000)
    middle = run.file("/data/mid.dat", existed=False, size=1_000_000)
    result = run.file("/data/out.dat", existed=False, size=200_000)
    run.read(gen, source, 0, 500_000, at=1.25, until=1.5)
    run.write(gen, middle, 0, 1_000_000, at=2.0, until=2.5)
    run.read(proc, middle, 0, 1_000_000, at=4.5, until=5.0)
    run.write(proc, result, 0, 200_000, at=5.5, until=5.75)
    return run
