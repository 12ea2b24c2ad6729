"""`emit`: typed options override tracehint.toml, and a file of another kind is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import inside
from tests.support.hints import rule, save

FILES = {
    "Makefile": "a: b\n\tcp b a\n",
    "Snakefile": "rule a:\n  output: 'x'\n  shell: 'touch x'\n",
    "main.nf": "process A { script: 'true' }\nworkflow { A() }\n",
    "w.makeflow": "a: b\n\tcp b a\n",
    "run.sh": "cp b a\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_store_that_was_typed_gives_its_script_before_and_after_init(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(FILES[name])
    (tmp_path / "b").write_text("1")
    save(tmp_path, rule("{name}.txt", DP="local"))
    (tmp_path / "a.txt").write_text("1")
    words = ("emit", "hints.json", "--store", "xattr", "--dir", ".", "--force", "-o", "hints.sh")
    texts = []
    for _ in range(2):
        done = inside(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        texts.append((tmp_path / "hints.sh").read_text())
        assert inside("init", "--force", cwd=tmp_path).returncode == 0
    assert texts[0] == texts[1]
    assert texts[0].startswith("#!/bin/sh")


@pytest.mark.parametrize("engine", ["snakemake", "nextflow", "makeflow", "cwl", "pegasus"])
@pytest.mark.parametrize("name", ["/etc/passwd", "missing", "."])
def test_a_file_of_something_else_is_refused(engine: str, name: str, tmp_path: Path) -> None:
    save(tmp_path, rule("{name}.txt", DP="local"))
    words = ("emit", "hints.json", name, "--workflow-engine", engine, "-o", "out")
    done = inside(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert done.stderr and not (tmp_path / "out").exists()


def test_a_nul_in_a_manifest_is_damage(tmp_path: Path) -> None:
    import json

    from tests.support.run_model import RunBuilder

    run = RunBuilder()
    run.process(["sh", "w.sh"])
    run.save(tmp_path / "r.trace")
    manifest = tmp_path / "r.trace" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "cwd": "/a\0b"}))
    done = inside("analyze", "r.trace", cwd=tmp_path)
    assert done.returncode == 2
    assert "damaged manifest" in done.stderr
