"""Draw docs/architecture.svg, the packages and their imports; `--check` compares its source."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "architecture.svg"
# top to bottom, as the contract of import-linter in pyproject.toml: layer -> colour
LAYERS = {
    "commands": "#f3d9b1", "app": "#f7e7a8", "adapters": "#cfe8cf", "hintgen": "#cfe0f5",
    "analyzer": "#dcd3ee", "collectors": "#f5d0d0", "schemas": "#e3e3e3",
}  # fmt: skip  # a table


def package_of(parts: tuple[str, ...]) -> str:
    """Return the node of a module: layer and package, or only the layer for its own modules."""
    nested = len(parts) > 2 and (ROOT / parts[0] / parts[1]).is_dir()
    return "/".join(parts[:2]) if nested else parts[0]


def imported(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield the modules of tracehint that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tracehint."):
            base = tuple(str(node.module).split(".")[1:])
            yield from ((*base, alias.name) for alias in node.names)


def graph() -> nx.DiGraph:
    """Return the graph of packages and their imports."""
    found = nx.DiGraph()
    for layer in LAYERS:
        folder = ROOT / layer if (ROOT / layer).is_dir() else ROOT / "src/tracehint" / layer
        for path in sorted(folder.rglob("*.py")):
            own = package_of((layer, *path.relative_to(folder).with_suffix("").parts))
            found.add_node(own)
            for parts in imported(path):
                if parts[0] in LAYERS and package_of(parts) != own:
                    found.add_edge(own, package_of(parts))
    return found


def source(found: nx.DiGraph) -> str:
    """Return the graph in DOT; of imports inside a layer, only the transitive reduction."""
    lines = [
        'digraph tracehint { compound=true; newrank=true; rankdir=TB; ranksep=0.35; nodesep=0.15;',
        'bgcolor=white; node [shape=box style="filled,rounded" fontname=Helvetica fontsize=10 '
        'height=0.3 fillcolor=white]; edge [color="#777777" arrowsize=0.5];',
    ]  # fmt: skip  # a table
    for layer, colour in LAYERS.items():
        inside = sorted(n for n in found if n.split("/")[0] == layer)
        lines.append(f'subgraph cluster_{layer} {{ label="{layer}" labeljust=l fontname=Helvetica;')
        lines.append(f'style="filled,rounded" color="{colour}";')
        for name in inside:
            title = "shared modules" if name == layer and len(inside) > 1 else name.split("/")[-1]
            lines.append(f'"{name}" [label="{title}"];')
        packages = found.subgraph([n for n in inside if n != layer])
        lines += [f'"{a}" -> "{b}";' for a, b in sorted(nx.transitive_reduction(packages).edges)]
        lines.append("}")
    between = nx.DiGraph(
        (a.split("/")[0], b.split("/")[0])
        for a, b in found.edges
        if a.split("/")[0] != b.split("/")[0]
    )
    for a, b in sorted(nx.transitive_reduction(between).edges):
        ends = f"ltail=cluster_{a} lhead=cluster_{b}"
        lines.append(f'"{a}" -> "{b}" [{ends} penwidth=2 color=black minlen=2];')
    return "\n".join([*lines, "}\n"])


def main() -> int:
    text = source(graph())
    mark = f"<!-- {hashlib.sha256(text.encode()).hexdigest()} -->\n"
    if "--check" in sys.argv:
        if TARGET.exists() and TARGET.read_text(encoding="utf-8").endswith(mark):
            return 0
        print(f"{TARGET}: not current; run python scripts/gen_architecture.py", file=sys.stderr)
        return 1
    drawn = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True)
    TARGET.write_text(drawn.stdout.rstrip() + "\n" + mark, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
