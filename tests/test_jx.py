"""JX workflows: evaluated by jx2json of cctools, within limits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.test_engine_graphs import files, tasks
from tracehint.adapters.engines.graph_base import DeclaredGraph
from tracehint.adapters.engines.graphs import read_graph
from tracehint.errors import InputError, MissingDependencyError, TracehintError

needs_jx2json = pytest.mark.skipif(
    shutil.which("jx2json") is None, reason="jx2json (coop-computing-tools) is not installed"
)


LOOPS = "for a in range(2000) for b in range(2000) for c in range(2000)"


def graph_of(folder: Path, text: str) -> DeclaredGraph:
    (folder / "w.jx").write_text(text)
    return read_graph(folder / "w.jx", "makeflow")


@pytest.mark.engine
@needs_jx2json
def test_loops_names_and_letters_beyond_ascii(tmp_path: Path) -> None:
    text = """{ # two loops
        "define": {"N": 2, "sites": ["a", "\u00e9\\\\u"]},
        "rules": [
            {"command": "sim " + i + " > " + s + i, "outputs": [s + i]}
                for s in sites for i in range(N) if i > 0,
            {"command": "cat > all", "inputs": [s + "1" for s in sites], "outputs": ["all"]},
        ]}"""
    graph = graph_of(tmp_path, text)
    assert [t["name"] for t in tasks(graph)] == ["a1", "\u00e9\\u1", "all"]
    assert tasks(graph)[2]["parents"] == ["n0", "n1"]
    assert files(graph, "n2", "in") == [b"a1", "\u00e9\\u1".encode()]


@pytest.mark.engine
@needs_jx2json
def test_names_are_relative_to_the_workflow(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one").touch()
    rules = '{"rules": [{"command": "true", "outputs": [f]} for f in listdir("data")]}'
    assert [t["name"] for t in tasks(graph_of(tmp_path, rules))] == ["one"]


@pytest.mark.engine
@needs_jx2json
@pytest.mark.parametrize(
    ("limits", "expression", "match"),
    [
        ("", '[{"command": "echo " + M}]', "M: undefined symbol"),
        ("", "[1, 2", "closing delimiter"),
        ("", "[" * 50_000, "by signal|memory"),
        ("jx-seconds=1", f"[1 {LOOPS} if a < 0]", "jx-seconds=N"),
        ("jx-bytes=50", "range(200)", "jx-bytes=N"),
        ("", '[fetch\n("x; touch made")]', "fetch"),
        ("", 'listdir("/etc")', "literal path"),
        ("", 'listdir("a/../..")', "literal path"),
        ("", '[listdir("x" + "y"), "listdir(\\"x\\")"]', "literal path"),
        ("", '[fetch # (\n("x; touch made")]', "fetch"),
    ],
)
def test_what_fails_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: str, expression: str, match: str
) -> None:
    monkeypatch.setenv("TRACEHINT_LIMITS", limits)
    with pytest.raises(InputError, match=match):
        graph_of(tmp_path, f'{{"rules": {expression}}}')
    assert [p.name for p in tmp_path.iterdir()] == ["w.jx"]


def test_without_jx2json_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"not JSON: .*jx2json") as caught:
        graph_of(tmp_path, '{"rules": [] + []}')
    assert "coop-computing-tools" in caught.value.remedy
    graph = graph_of(tmp_path, '{"rules": [{"command": "true"}]}')  # plain JSON needs no jx2json
    assert graph.tasks.num_rows == 1
    rules = '{"rules": [] + [{"command": "true", "resources": {"cores": 2}}]}'
    (tmp_path / "w.jx.makeflowlog").write_text("# NODE\t0\ttrue\n# COMMAND\t0\ttrue\n")
    assert any("jx2json" in note for note in graph_of(tmp_path, rules).notes)


@pytest.mark.engine
@needs_jx2json
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(alphabet='[]{}(),:;"\\#+-*/%=!<>&|.19eaxfor in\n', max_size=60))
def test_any_text_is_a_value_or_an_error(tmp_path: Path, text: str) -> None:
    try:
        graph_of(tmp_path, '{"rules": [] + ' + text + "}")
    except TracehintError as error:
        assert error.remedy
