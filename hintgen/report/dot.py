"""Conversion of a Drawing to DOT, and of DOT to an image by Graphviz."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from tracehint.errors import MissingDependencyError, TracehintError
from tracehint.hintgen.report.drawing import PATTERN_COLOR, color, tint
from tracehint.hintgen.text import escape
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.hintgen.report.drawing import Drawing, GraphNode, Link


LABEL_WIDTH = 28
_GRAPH = (
    # Draw boxes over lines: the head of a thick line would cover the label that it points at.
    'rankdir=TB; bgcolor="white"; nodesep=0.25; ranksep=0.45; splines=true; pad=0.3; '
    "outputorder=edgesfirst;\n"
    '  fontname="Helvetica"; fontsize=11;\n'
    '  node [fontname="Helvetica", fontsize=11, margin="0.12,0.06"];\n'
    '  edge [fontname="Helvetica", fontsize=9, arrowsize=0.6];'
)
_INK = "#222222"


def to_dot(drawing: Drawing, title: str = "") -> str:
    """Return DOT text; every name is quoted and its escape sequences are disabled."""
    most = max((link.bytes for link in drawing.links), default=0)
    lines = ["digraph run {", f"  {_GRAPH}", f"  {_legend(drawing, title)}"]
    lines += [f"  {_task(n) if n.kind == 'task' else _file(n)}" for n in drawing.nodes]
    lines += [f"  {_link(link, most)}" for link in drawing.links]
    return "\n".join([*lines, "}"]) + "\n"


def _label(*rows: str) -> str:
    return '"' + "\\n".join(escape.dot_part(row) for row in rows if row) + '"'


def task_rows(node: GraphNode) -> list[str]:
    """Return the task's type and the rest of its name, or the name with a count of several tasks.

    >>> from tracehint.hintgen.report.drawing import GraphNode
    >>> task_rows(GraphNode("t1", "task", "python3 fit.py a.dat", 1, 0, type="fit.py"))
    ['fit.py', 'a.dat']
    """
    name, kind = escape.text(node.label), escape.text(node.type)
    count = f" × {node.count:,}" if node.count > 1 else ""
    if count or not kind or name == kind:
        return [escape.shorten(name, LABEL_WIDTH) + count]
    # split at the type as a whole word only
    rest = re.split(rf"(?:^|(?<=[\s/])){re.escape(kind)}(?:\s+|$)", name, maxsplit=1)
    more = rest[1] if len(rest) > 1 else name
    return [escape.shorten(row, LABEL_WIDTH) for row in (kind, more) if row]


def _task(node: GraphNode) -> str:
    tip = f"{node.label}: {plural(node.count, 'task')}, {size(node.bytes)} read and written"
    return (
        f'"{node.id}" [shape=box, style="rounded,filled", fillcolor="#e9ebee", color="{_INK}", '
        f"fontcolor=black, penwidth=1.2, label={_label(*task_rows(node))}, "
        f"tooltip={escape.dot(tip)}];"
    )


def _file(node: GraphNode) -> str:
    more = f" + {plural(node.kinds - 1, 'kind')}" if node.kinds > 1 else ""
    name = escape.shorten(escape.text(node.label), LABEL_WIDTH - len(more)) + more
    many = f"{plural(node.count, 'file')}, " if node.count > 1 else ""
    what = node.pattern.replace("_", " ")
    style = "filled,dashed" if node.role == "input" else "filled"
    edges = 2 if node.role == "output" else 1
    tip = f"{node.label}: {node.role}, {what or 'no pattern'}"
    return (
        f'"{node.id}" [shape=box, style="{style}", fillcolor="{tint(node.pattern)}", '
        f'color="{color(node.pattern)}", penwidth=1.4, peripheries={edges}, fontcolor=black, '
        f"fontsize=10, label={_label(name, many + size(node.bytes), what)}, "
        f"tooltip={escape.dot(tip)}];"
    )


def _link(link: Link, most: int) -> str:
    style = "dotted" if link.peek else "dashed" if link.via != "data" else "solid"
    tip = escape.dot(f"{size(link.bytes)}, {plural(link.count, 'pair')} of task and file")
    return (
        f'"{link.source}" -> "{link.target}" [color="{color(link.pattern)}", style={style}, '
        f"penwidth={line_width(link.bytes, most):.2f}, tooltip={tip}, edgetooltip={tip}];"
    )


def line_width(count: int, most: int) -> float:
    """Return 0.8 to 6 points by the logarithm of the bytes, so that a header read stays visible.

    >>> line_width(0, 100), line_width(100, 100)
    (0.8, 6.0)
    """
    if count <= 0 or most <= 0:
        return 0.8
    return 0.8 + 5.2 * (math.log1p(count) / math.log1p(most)) ** 3


def _legend(drawing: Drawing, title: str) -> str:
    used = {n.pattern for n in drawing.nodes if n.pattern}
    cells = [
        f'<TD BGCOLOR="{tint(p, 0.35)}" COLOR="{color(p)}" BORDER="2">{p.replace("_", " ")}</TD>'
        for p in PATTERN_COLOR
        if p in used
    ]
    notes = "round: task, square: file (dashed: input, double: output); line width: bytes"
    notes += ", dotted: header read" * any(link.peek for link in drawing.links)
    if drawing.folded:
        notes += "; tasks of one type and files of one kind are one box"
    left = ", ".join(
        plural(count, what.removesuffix("s").replace("_", " "))
        for what, count in drawing.left_out.items()
    )
    # A separate table, so that the lines of text do not stretch its cells.
    patterns = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="4"><TR>{"".join(cells)}</TR></TABLE>'
    rows = [f"<TR><TD>{patterns}</TD></TR>"] if cells else []
    texts = [escape.shorten(escape.text(title), 100), notes, f"not shown: {left}" if left else ""]
    for index, line in enumerate(t for t in texts if t):
        bold = ("<B>", "</B>") if index == 0 and title else ("", "")
        row = f"<TR><TD>{bold[0]}{escape.html(line)}{bold[1]}</TD></TR>"
        rows.insert(0, row) if index == 0 and title else rows.append(row)
    table = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="2">{"".join(rows)}</TABLE>'
    return f"labelloc=b; label=<{table}>;"


def draw(dot_text: str, fmt: str, timeout: float = 120.0) -> bytes:
    """Render the DOT text as `svg` or `png` with Graphviz.

    Raises MissingDependencyError without Graphviz, TracehintError when it
    fails or takes longer than `timeout` seconds.
    """
    program = shutil.which("dot")
    if program is None:
        raise MissingDependencyError(
            "Graphviz is not installed (no `dot` on PATH)",
            "Install the package graphviz; or write -o graph.dot, graph.graphml or graph.json.",
        )
    try:
        done = subprocess.run(
            [program, f"-T{fmt}", "-Gdpi=110"] if fmt == "png" else [program, f"-T{fmt}"],
            input=dot_text.encode(),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TracehintError(
            f"Graphviz did not finish in {timeout:.0f} s",
            "Draw the folded graph (--fold), or write -o graph.graphml for another tool.",
        ) from None
    if done.returncode != 0 or not done.stdout:
        why = escape.text(done.stderr[-300:].decode("utf-8", "replace").strip())
        raise TracehintError(f"Graphviz failed: {why}", "Try --fold, or -o graph.dot.")
    return done.stdout
