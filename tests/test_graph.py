"""The graph: its contents, folding, and that no name breaks a format."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import pytest

from tests.support.big import hostile_run
from tests.support.hostile import HOSTILE_NAMES
from tests.support.runs import parse_run
from tracehint.errors import MissingDependencyError, TracehintError
from tracehint.hintgen.report import dot, graph_export
from tracehint.hintgen.report.drawing import (
    FOLD_ABOVE,
    FOLD_NODES,
    MAX_FOLDED_FILES,
    PATTERN_COLOR,
    GraphNode,
    build,
    title,
)

MONTAGE = (Path(__file__).parent / "runs" / "montage.txt").read_text()
SVG = "{http://www.w3.org/2000/svg}"
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def test_large_run_is_folded_by_type_with_counts() -> None:
    drawing = build(parse_run(MONTAGE).analysis())
    tasks = {n.label: n.count for n in drawing.nodes if n.kind == "task"}
    assert drawing.folded
    assert tasks["mDiff"] == 20
    assert tasks["mProject"] == 12
    assert "makeflow" not in tasks
    assert drawing.left_out == {"engine_tasks": 1}
    files = {n.label: n for n in drawing.nodes if n.kind == "file"}
    assert files["proj/p_*.fits"].count == 12
    assert files["proj/p_*.fits"].bytes == 12 * (4 << 20)
    assert files["proj/p_*.fits"].pattern == "broadcast"
    assert files["region.hdr"].role == "input"


def test_unfolded_has_one_node_per_task_and_file_and_conserves_bytes() -> None:
    analysis = parse_run(MONTAGE).analysis()
    folded, flat = build(analysis, True), build(analysis, False)
    assert sum(n.count for n in folded.nodes) == len(flat.nodes)
    assert sum(link.bytes for link in folded.links) == sum(link.bytes for link in flat.links)
    assert sum(link.count for link in folded.links) == len(flat.links)
    assert len(flat.nodes) == 81 + 98


def test_small_run_is_not_folded() -> None:
    text = "\n".join(f"task t_{i}" for i in range(FOLD_ABOVE))
    assert not build(parse_run(text).analysis()).folded
    assert build(parse_run(text + "\ntask one_more").analysis()).folded
    few = "task a\n" + "\n".join(f"file x{i} 1K\nwrite a x{i}" for i in range(FOLD_NODES))
    assert build(parse_run(few).analysis()).folded


def test_many_kinds_of_files_between_two_stages_are_one_node() -> None:
    lines = ["task gen", "task use start=2"]
    for i in range(MAX_FOLDED_FILES + 1):
        name = f"{chr(97 + i % 26)}{chr(97 + i // 26)}/x.dat"
        lines += [f"file {name} 1K", f"write gen {name}", f"read use {name}"]
    (files,) = [n for n in build(parse_run("\n".join(lines)).analysis(), True).nodes if n.role]
    assert files.kinds == files.count == MAX_FOLDED_FILES + 1


@needs_dot
@pytest.mark.parametrize("fold", [True, False])
def test_hostile_names_stay_labels(fold: bool) -> None:
    drawing = build(hostile_run(), fold)
    root = ElementTree.fromstring(dot.draw(dot.to_dot(drawing, "</TD>\x1b&amp;\"'"), "svg"))
    nodes = [g for g in root.iter(f"{SVG}g") if g.get("class") == "node"]
    edges = [g for g in root.iter(f"{SVG}g") if g.get("class") == "edge"]
    assert len(nodes) == len(drawing.nodes)
    assert len(edges) == len(drawing.links)
    tags = {e.tag.removeprefix(SVG) for e in root.iter()}
    assert "script" not in tags and "image" not in tags
    links = [v for e in root.iter() for k, v in e.attrib.items() if k.endswith("}href")]
    assert links == []


def test_hostile_names_in_graphml_and_json() -> None:
    drawing = build(hostile_run(), False)
    back = nx.parse_graphml(graph_export.to_graphml(drawing))
    assert set(back.nodes) == {n.id for n in drawing.nodes}
    files = [d["label"] for _, d in back.nodes(data=True) if d["kind"] == "file"]
    assert len(set(files)) == len(HOSTILE_NAMES)
    data = json.loads(graph_export.to_json(drawing))
    assert len(data["nodes"]) == len(drawing.nodes)


def test_networkx_graph_is_bipartite_with_attributes() -> None:
    graph = graph_export.to_networkx(parse_run(MONTAGE).analysis(), fold=True)
    tasks = {n for n, d in graph.nodes(data=True) if d["kind"] == "task"}
    assert nx.is_bipartite(graph)
    assert all((a in tasks) != (b in tasks) for a, b in graph.edges)
    assert nx.is_directed_acyclic_graph(graph)


@needs_dot
def test_svg_and_png_are_pictures() -> None:
    text = dot.to_dot(build(parse_run(MONTAGE).analysis()), "makeflow m.mf")
    assert dot.draw(text, "png").startswith(b"\x89PNG")
    svg = dot.draw(text, "svg").decode()
    assert "mDiff × 20" in re.sub(r"&#215;|&#160;", lambda m: {"&#215;": "×"}.get(m[0], " "), svg)
    for pattern in ("broadcast", "reduce", "pipeline"):
        assert PATTERN_COLOR[pattern].lower() in svg.lower()


def test_missing_graphviz_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingDependencyError, match="Install the package graphviz"):
        dot.draw("digraph x {}", "svg")


@needs_dot
def test_graphviz_that_fails_or_hangs_is_an_error() -> None:
    with pytest.raises(TracehintError, match="Graphviz failed"):
        dot.draw("digraph x {", "svg")
    with pytest.raises(TracehintError, match="--fold"):
        dot.draw(dot.to_dot(build(parse_run(MONTAGE).analysis(), False)), "svg", timeout=0.01)


@pytest.mark.parametrize(
    ("name", "kind", "rows"),
    [
        ("python3 fit.py a.dat b.dat", "fit.py", ["fit.py", "a.dat b.dat"]),
        ("/usr/bin/sort -n x", "sort", ["sort", "-n x"]),
        ("fit_7", "fit", ["fit", "fit_7"]),
        ("sort", "sort", ["sort"]),
        ("resort sort x", "sort", ["sort", "x"]),
        ("a" * 90 + " b", "c", ["c", "a" * 14 + "…" + "a" * 11 + " b"]),
        ("x", "", ["x"]),
    ],
)
def test_a_task_is_named_by_its_type_and_by_what_differs(
    name: str, kind: str, rows: list[str]
) -> None:
    assert dot.task_rows(GraphNode("t1", "task", name, 1, 0, type=kind)) == rows


def test_picture_of_an_imported_run_has_a_title() -> None:
    assert title({"command": []}, Path("far/away/x.trace")) == "x.trace"
    assert title({"command": ["make", "-j4"]}, Path("x.trace")) == "make -j4"
    assert title({"command": None}) == "a run"
    assert title({"command": ["/far/away/bin/make", "/in"]}) == "make /in"


def test_heads_of_lines_do_not_cover_names() -> None:
    assert "outputorder=edgesfirst" in dot.to_dot(build(parse_run(MONTAGE).analysis()))


def test_a_fold_of_several_kinds_names_one_of_them() -> None:
    lines = ["task gen", "task use start=2"]
    for name in [f"{a}{b}/x.dat" for a in "abcdefg" for b in "abcdefg"]:
        lines += [f"file {name} 1K", f"write gen {name}", f"read use {name}"]
    text = dot.to_dot(build(parse_run("\n".join(lines)).analysis(), True))
    assert f"aa/x.dat + {7 * 7 - 1} kinds" in text
