"""A file that an engine publishes is the engine's copy: in the graph, the picture, the linter."""

from __future__ import annotations

from pathlib import Path

from tests.support.bundles import RunBuilder
from tests.support.trees import P, grow, labelled
from tracehint.analyzer.analyze import analyze
from tracehint.hintgen.lint import run_rules
from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.report.drawing import build

SIZE = 1 << 20
DECLARED = {"command": b"", "attempt": 1, "parents": [], "exit_status": 0, "engine": "nextflow"}
LAUNCHER = ["java", "-cp", "/f/*", "nextflow.cli.Launcher", "run", "main.nf"]


def published() -> RunBuilder:
    """A task writes x and an undeclared file; Nextflow publishes x; another task reads the copy."""
    run = RunBuilder(cwd="/data")
    run.manifest.cwd = "/data"
    words = ["/bin/bash", "-ue", ".command.run"]
    make = P(words, P(["gen", "x"], label="gen"), cwd="/data/work/aa/1")
    use = P(words, P(["use", "x"], label="use"), cwd="/data/work/bb/2", start=5.0)
    tree = labelled(grow(run, P(LAUNCHER, make, use, label="engine")))
    engine, gen, reads = (tree[name].procs[-1] for name in ("engine", "gen", "use"))
    original, copy = run.file("/data/work/aa/1/x", size=SIZE), run.file("/data/out/x", size=SIZE)
    other = run.file("/data/out/log", size=10)
    run.write(gen, original, 0, SIZE, at=1.0)
    run.write(gen, other, 0, 10, at=1.0)
    run.read(engine, original, 0, SIZE, at=2.0)
    run.write(engine, copy, 0, SIZE, at=2.1)
    run.read(reads, copy, 0, SIZE, at=6.0)
    for task, words, path in (("1", "gen", "work/aa/1/x"), ("2", "use", None)):
        folder = "aa/1" if task == "1" else "bb/2"
        who = {"host": run.host, "task": task}
        about = {"name": words, "type": words, "workdir": f"/data/work/{folder}".encode()}
        run.rows["declared_tasks"].append(who | about | DECLARED)
        if path:
            made = {"path": f"/data/{path}".encode(), "direction": "out", "size_bytes": SIZE}
            run.rows["declared_io"].append(who | made)
    return run


def test_a_published_file_is_the_engines_copy(tmp_path: Path) -> None:
    analysis = analyze(published().bundle(tmp_path))
    path = {r["file"]: r["path"].decode() for r in analysis.files.to_pylist()}
    made = {path[r["file"]]: (r["how"], r["bytes"]) for r in analysis.producers.to_pylist()}
    assert made["out/x"] == (["engine_copy"], 0)
    assert made["work/aa/1/x"] == (["write"], SIZE)
    assert [(path[e["file"]], e["via"]) for e in analysis.edges.to_pylist()] == [
        ("out/x", "engine_copy")
    ]


def test_the_picture_shows_it_as_such(tmp_path: Path) -> None:
    drawing = build(analyze(published().bundle(tmp_path)), False)
    name = {n.id: n.label for n in drawing.nodes}
    via = {(name[e.source], name[e.target]): e.via for e in drawing.links}
    assert via["gen", "out/x"] == "engine_copy"
    assert via["gen", "out/log"] == "data"


def test_a_task_need_not_declare_what_the_engine_publishes(tmp_path: Path) -> None:
    bundle = published().bundle(tmp_path)
    found = run_rules(Context(analyze(bundle), bundle), ["TD002"])
    assert [f.examples for f in found] == [(b"out/log",)]


def test_a_task_need_not_declare_where_its_output_was_sent_before_the_run(tmp_path: Path) -> None:
    run = published()
    (row,) = (row for row in run.rows["opens"] if row["path"] == b"/data/out/log")
    row["via"] = "inherited"
    by_itself = {"open": 999, "via": "open", "write_ops": 0, "write_bytes": 0, "flags": 1}
    for more, found in ({}, 0), (row | by_itself, 1):
        run.rows["opens"] += [more] if more else []
        (folder := tmp_path / str(found)).mkdir()
        bundle = run.bundle(folder)
        assert len(run_rules(Context(analyze(bundle), bundle), ["TD002"])) == found
