"""Rules for the names under which files are made, learned from the renames of a recorded run.

A program that writes `x.part` or `tmpab12cd34` and renames it at the end makes its file under a
name that no rule is for. The recorded run tells which name became which: the rule of the last
name is said of the first one too. Where names of one look became files of different hints, nothing
is said.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tracehint.adapters.creation.resolution import Resolution
from tracehint.adapters.paths import inside
from tracehint.adapters.plan import Target
from tracehint.errors import InputError
from tracehint.hintgen.hints.model import Hint, Rule
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.template import parse

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle

_MOST = 5_000  # rules
FEW, LEAST = 3, 4  # names of one place, and letters in which they differ, that tell
_PLAIN = re.compile(rb"[A-Za-z0-9_]+")


def made_as(bundle: Bundle, resolution: Resolution, roots: Sequence[bytes]) -> list[Rule]:
    """The rules, at most 5,000. `roots`: the run's data roots, longest first."""
    pairs = [(made, last) for made, last in _renamed(bundle, roots) if made != last]
    targets = resolution.resolve([last for _, last in pairs])
    kinds: dict[str, list[tuple[bytes, Target | None]]] = defaultdict(list)
    for (made, _), template, target in zip(pairs, _templates(pairs), targets, strict=True):
        kinds[template].append((made, target))
    rules = []
    for template, files in kinds.items():
        target = files[0][1]
        if target is None or any(t is None or t.hints != target.hints for _, t in files):
            continue
        try:
            rules.append(_rule(template, target, [path for path, _ in files]))
        except InputError:  # a look that is too loose for a rule
            continue
    return rules[:_MOST]


def _renamed(bundle: Bundle, roots: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """(first name, last name) below the roots of files that were made and renamed."""
    import duckdb

    con = duckdb.connect(":memory:")
    con.register("names", bundle.tables["names"])
    rows = con.execute(
        """SELECT arg_min(path, seq) FILTER (op = 'create'),
                  arg_max(new_path, seq) FILTER (op = 'rename')
           FROM names WHERE op IN ('create', 'rename') GROUP BY file
           HAVING count(*) FILTER (op = 'rename') > 0 AND count(*) FILTER (op = 'create') > 0"""
    ).fetchall()
    for made, last in rows:
        names = _below(made, roots), _below(last, roots)
        if all(names):
            yield names


def _below(path: bytes, roots: Sequence[bytes]) -> bytes:
    """The path below its root; empty: it lies elsewhere."""
    for root in roots:
        start = root.rstrip(b"/") + b"/"
        if path.startswith(start) and inside(path[len(start) :]):
            return path[len(start) :]
    return b""


def _templates(pairs: Sequence[tuple[bytes, bytes]]) -> list[str]:
    """Of a name with a random part its look, else the name itself."""
    import pyarrow as pa

    from tracehint.hintgen.text.masks import RANDOM_PART, shapes_of

    if not pairs:
        return []
    paths, sure = [made for made, _ in pairs], _made_up(pairs)
    random = re.compile(RANDOM_PART.encode())
    shapes = shapes_of(pa.array(paths, pa.binary())).to_pylist()
    shapes = [
        shape if random.search(shape) else sure.get(path, shape)
        for path, shape in zip(paths, shapes, strict=True)
    ]
    return [
        _template(shape) if random.search(shape) else to_text(path, braces=True)
        for path, shape in zip(paths, shapes, strict=True)
    ]


def _made_up(pairs: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The look of names that say nothing of what their files are called in the end: in one
    directory, of one length, and different in one place."""
    places: dict[tuple[bytes, int], list[tuple[bytes, bytes]]] = defaultdict(list)
    for made, last in pairs:
        folder, _, name = made.rpartition(b"/")
        places[folder, len(name)].append((made, last))
    found = {}
    for same in places.values():
        names = [made for made, _ in same]
        before = _common(names)
        behind = _common([name[len(before) :][::-1] for name in names])[::-1]
        parts = [name[len(before) : len(name) - len(behind)] for name in names]
        alien = all(part not in last for part, (_, last) in zip(parts, same, strict=True))
        long = min(map(len, parts)) >= LEAST and all(map(_PLAIN.fullmatch, parts))
        if len(set(parts)) >= FEW and alien and long:
            found.update(dict.fromkeys(names, before + b"\0r" + behind))
    return found


def _common(names: Sequence[bytes]) -> bytes:
    """What all of them begin with."""
    low, high = min(names), max(names)
    equal = (at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b)
    return low[: next(equal, min(len(low), len(high)))]


def _template(shape: bytes) -> str:
    """A shape of hintgen/text/masks.py as a template."""
    from tracehint.hintgen.text.masks import MARKS

    first, *rest = shape.split(b"\0")
    parts = [to_text(first, braces=True)]
    for part in rest:
        parts += ["{" + MARKS[chr(part[0])] + "}", to_text(part[1:], braces=True)]
    return "".join(parts)


def _rule(template: str, target: Target, paths: Sequence[bytes]) -> Rule:
    parsed = parse(template)
    return Rule(
        id=f"{target.rule}-made-as-{template}"[:200],
        template=template,
        regex=parsed.regex,
        directory=to_text(parsed.directory),
        producer=None,
        consumers=(),
        pattern=target.pattern,
        hints=tuple(Hint(name, value, "create") for name, value in target.hints.items()),
        confidence=0.5,
        evidence={"files": len(paths), "bytes": 0},
        examples=tuple(to_text(path) for path in paths[:5]),
        producers=(),
    )
