"""The documentation is true: its commands run, generated pages are current, links resolve."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.cli import tracehint
from tests.support.forked import NAME_ITSELF, program
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if re.search(r"^```sh$", p.read_text(), re.M))
GENERATORS = (
    "gen_architecture.py",
    "gen_cli_docs.py",
    "gen_cluster_docs.py",
    "gen_limits.py",
    "gen_schemas.py",
    "gen_store_docs.py",
    "gen_man.py",
    "gen_reach.py",
    "gen_secrets.py",
    "rule_pages.py",
)
MAN = sorted((DOCS / "man").glob("*.1"))
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def shell_blocks(page: Path) -> str:
    """Return all ```sh blocks of a page as one script."""
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.M | re.S))


def slurm_of(page: Path) -> AbstractContextManager[dict[str, str]]:
    """The environment of a real Slurm cluster, for a page that submits jobs."""

    @contextmanager
    def running() -> Iterator[dict[str, str]]:
        from tests.support.slurm import cluster, missing

        if lost := missing():
            pytest.skip(lost)
        with cluster(("node1", "node2")) as slurm:
            yield {"SLURM_CONF": slurm.env["SLURM_CONF"]}

    return running() if "\nsbatch " in shell_blocks(page) else nullcontext({})


# Full runs only: an end-to-end test runs the commands of these pages and checks more results.
TESTED = {
    "how-to/nextflow.md": "e2e/test_nextflow.py",
    "how-to/slurm-without-root.md": "e2e/test_slurm_preload.py",
    "how-to/snakemake.md": "test_emit_snakemake.py, test_snakemake_matrix.py",
    "tutorial/montage.md": "test_lint_judged.py, e2e/test_montage.py",
}


def marks_of(page: Path) -> list[pytest.MarkDecorator]:
    needs = re.search(r"^sbatch |nextflow run", shell_blocks(page), re.M)
    tested = str(page.relative_to(DOCS)) in TESTED
    return [pytest.mark.engine] * bool(needs) + [pytest.mark.full] * tested


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [pytest.param(p, id=str(p.relative_to(DOCS)), marks=marks_of(p)) for p in PAGES]
)
def test_commands_of_the_page_run(page: Path, tmp_path: Path) -> None:
    with slurm_of(page) as more:
        run_page(page, tmp_path, more)


def run_page(page: Path, tmp_path: Path, more: dict[str, str]) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder)
    work = tmp_path / "work"
    work.mkdir()
    if "nextflow run" in shell_blocks(page):
        from tests.support.engines import engine

        (folder / "nextflow").symlink_to(engine("nextflow"))
    environment = {
        **os.environ,
        "PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TRACEHINT_DEMO": str(ROOT / "datasets" / "demo"),
        "TRACEHINT_DATASETS": str(ROOT / "datasets"),
        "TRACEHINT_PYTHON": sys.executable,
        **more,
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", NAME_ITSELF + shell_blocks(page)],
        cwd=work, env=environment, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip  # a table
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def python_block(page: str, tmp_path: Path, name: str) -> ModuleType:
    """Return the first ```python block of a how-to page as a module."""
    found = re.search(r"^```python\n(.*?)^```$", (DOCS / "how-to" / page).read_text(), re.M | re.S)
    assert found
    path = tmp_path / f"{name}.py"
    path.write_text(found[1])
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_rule_of_the_page_does_what_its_examples_say(tmp_path: Path) -> None:
    from tests import test_lint_rules as lint
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.lint.registry import RULES, SECTIONS

    rule = python_block("add-a-rule.md", tmp_path, "naming").colon_in_name
    assert rule.code not in RULES
    assert tuple(re.findall(r"^## (.+)$", rule.page, re.M)) == SECTIONS
    page = (DOCS / "how-to" / "add-a-rule.md").read_text().partition("~~~text")[2]
    examples = lint._EXAMPLE.findall(page)
    assert [e[0] for e in examples] == ["handed on", "no colon"]
    for _, text, expected in examples:
        run = lint.parse_run(text)
        context = Context(run.analysis(), run.bundle(), lint.Settings())
        lint.compare(list(rule.check(context)), expected.splitlines())
        assert not lint.lint(text, [c for c in RULES if c.startswith("TD")])


STEPPER = """
import pathlib, sys
from tracehint.analyzer.tasks import engine_processes as table
import stepper
table.ENGINES += (stepper.STEPPER,)
kept = "tracehint.analyzer.tasks.engine_processes"
for name in list(sys.modules):  # tables made from the registry are made again
    if name.startswith("tracehint.analyzer.tasks") and not name.startswith(kept):
        del sys.modules[name]
from tests.support.trees import P
from tests.test_tasks import cut_tree, engines, names
tree = P(["python3", "-m", "stepper"], P(["git", "describe"]),
         P(["sh", "-cu", "cp a b"], P(["cp", "a", "b"])),
         P(["sh", "-cu", "sort b > c"], P(["sort", "b"])))
result = cut_tree(pathlib.Path(sys.argv[1]), tree)
print(names(result), engines(result))
"""


@pytest.mark.slow
def test_the_engine_of_the_page_cuts_its_tasks(tmp_path: Path) -> None:
    python_block("add-an-engine.md", tmp_path, "stepper")
    done = subprocess.run(
        [sys.executable, "-c", STEPPER, tmp_path], text=True, capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
    )  # fmt: skip  # a table
    assert done.stdout == "['cp a b', 'sort b > c'] ['stepper', 'git']\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("script", GENERATORS)
def test_generated_pages_are_current(script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / script, "--check"],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "90"},
    )
    assert done.returncode == 0, done.stderr


def test_man_pages_have_the_form_of_one() -> None:
    """Needs no groff: only macros of man(7), and no text that would be read as a request."""
    known = {"TH", "SH", "PP", "TP", "B", "I", "BR", "RS", "RE", "nf", "fi", '\\"'}
    for page in MAN:
        lines = page.read_text().splitlines()
        macros = re.findall(r"^\.([A-Za-z]+|\\\")", page.read_text(), re.M)
        assert set(macros) <= known, page.name
        sections = [line.split()[1] for line in lines if line.startswith(".SH ")]
        assert sections[:2] == ["NAME", "SYNOPSIS"], page.name
        assert macros.count("nf") == macros.count("fi") and macros.count("RS") == macros.count("RE")
        assert not any(line.startswith("'") for line in lines), page.name


def test_every_command_has_a_man_page() -> None:
    from tracehint.cli import COMMANDS

    assert {page.stem for page in MAN} == {"tracehint", *(f"tracehint-{name}" for name in COMMANDS)}


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_man_pages_format_without_warnings() -> None:
    done = subprocess.run(
        ["groff", "-ww", "-man", "-Tutf8", *MAN], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and not done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_one_that_the_shell_reads(shell: str, tmp_path: Path) -> None:
    done = tracehint("completion", shell, cwd=tmp_path)
    assert done.returncode == 0 and not done.stderr and "_TRACEHINT_COMPLETE" in done.stdout
    if shutil.which(shell):
        read = subprocess.run([shell, "-n"], input=done.stdout, text=True, capture_output=True)
        assert read.returncode == 0, read.stderr


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("tracehint li", ["lint"]),
        ("tracehint hints --expl", ["--explain"]),
        ("tracehint lint --format ju", ["junit"]),
        ("tracehint nothing", []),
        ("tracehint explain tp009", ["TP009"]),
        ("tracehint wrong name", []),
    ],
)
def test_bash_completes(line: str, wanted: list[str], tmp_path: Path) -> None:
    if not shutil.which("bash"):
        pytest.skip("bash is not installed")
    words = line.split()
    program(tmp_path)
    text = tracehint("completion", "bash", cwd=tmp_path).stdout
    ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _tracehint_completion tracehint"
    done = subprocess.run(
        ["bash", "--norc", "-c", f'{NAME_ITSELF}{text}\n{ask}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip  # a table
    assert done.stdout.split() == wanted, done.stderr


@pytest.mark.parametrize("page", [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_every_command_has_its_place_in_the_reference() -> None:
    from tracehint.cli import COMMANDS

    text = (DOCS / "reference" / "commands.md").read_text()
    for name in COMMANDS:
        assert f"\n## {name}\n" in text


@pytest.mark.slow
def test_files_of_the_architecture_page_exist() -> None:
    tree = "\n".join(str(p) for p in ROOT.glob("[a-z]*/**/*.*") if ".venv" not in p.parts)
    named = re.findall(r"`([a-z_0-9/]+\.(?:py|c|h|json))`", (DOCS / "architecture.md").read_text())
    assert len(named) > 50
    assert [n for n in named if not re.search(rf"(?m)(^|/){re.escape(n)}$", tree)] == []


def test_every_page_has_its_place_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w./-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    there = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert there - listed == set()
    assert listed - there == set()
