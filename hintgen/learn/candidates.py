"""Rule candidates: files grouped by name shape, groups of mixed patterns split.

A Candidate is a template with the file groups (filegroups.py) that it covers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from tracehint.hintgen.hints.model import Needs
from tracehint.hintgen.hints.template import Part, Template, template_of
from tracehint.hintgen.learn.filegroups import FileGroup, Types
from tracehint.hintgen.text.masks import MARKS, shapes_of


def with_shapes(facts: pa.Table) -> pa.Table:
    """Append the shape of each `path` as column `shape`; column `run` distinguishes the runs."""
    runs = facts["run"].combine_chunks() if "run" in facts.schema.names else None
    return facts.append_column("shape", shapes_of(facts["path"].combine_chunks(), runs))


def parts_of(shape: bytes) -> list[Part]:
    """Return the literals and placeholders of a shape."""
    first, *rest = shape.split(b"\x00")
    parts: list[Part] = [first]
    for piece in rest:
        parts += [MARKS[chr(piece[0])], piece[1:]]
    return [part for part in parts if part != b""]


def template_of_shape(shape: bytes) -> Template:
    """Return the template with the placeholders of a shape."""
    return template_of(parts_of(shape))


_FIELD = re.compile(rb"(?:\x00[a-z]|[0-9A-Za-z])+")
_SEPARATED = re.compile(rb"((?:\x00[a-z]|[0-9A-Za-z])+)")
_TOKEN = re.compile(rb"\x00[a-z]|[A-Za-z]+|[^\x000-9A-Za-z]|[0-9]+", re.DOTALL)


def skeleton(shape: bytes) -> bytes:
    """Replace each sequence of letters, digits and placeholders of a shape by one `W`."""
    return _FIELD.sub(b"\x00W", shape)


def fields(shape: bytes) -> list[bytes]:
    """Split a shape into alternating separators and fields (odd positions are fields)."""
    return _SEPARATED.split(shape)


def tokens(shape: bytes) -> list[bytes]:
    """Split a shape into words, numbers, placeholders and single separators."""
    return _TOKEN.findall(shape)


def merge_fields(shapes: list[bytes]) -> list[Part]:
    """Return parts that match all shapes of one skeleton; fields that vary become placeholders."""
    columns = zip(*(fields(shape) for shape in shapes), strict=True)
    parts: list[Part] = []
    for at, column in enumerate(columns):
        distinct = set(column)
        if len(distinct) == 1:
            parts += parts_of(column[0])
        elif at % 2 and all(value.isalpha() for value in distinct):
            parts.append("word")
        else:
            parts += _affixes(list(distinct))
    return parts


def _affixes(values: list[bytes]) -> list[Part]:
    """Merge the values of one field: common first and last tokens around {word} or {alnum}."""
    lists = [tokens(value) for value in values]
    low = min(map(len, lists))
    if len({len(value) for value in lists}) == 1:
        return [part for column in zip(*lists, strict=True) for part in _column(set(column))]
    head = next((i for i in range(low) if len({value[i] for value in lists}) > 1), low)
    tail = next((i for i in range(low - head) if len({v[-1 - i] for v in lists}) > 1), low - head)
    if head + tail >= low:  # the shortest value has no middle
        return ["alnum"]
    front = [part for token in lists[0][:head] for part in parts_of(token)]
    back = lists[0][len(lists[0]) - tail :] if tail else []
    return [*front, "alnum", *(part for token in back for part in parts_of(token))]


def _column(distinct: set[bytes]) -> list[Part]:
    if len(distinct) == 1:
        return parts_of(next(iter(distinct)))
    return ["word"] if all(value.isalpha() for value in distinct) else ["alnum"]


@dataclass
class Candidate:
    """A template and the file groups that it covers."""

    template: Template
    file_groups: list[FileGroup]
    need: Needs = ""  # what must be declared for the rule to match
    exclude: list[Template] = field(default_factory=list)
    level: int = 0  # 0: observed shapes, 1: generalised by name, 2: by types
    siblings: tuple[str, ...] = ()  # templates of names that must exist too: by_family()
    made_by: Types = ()  # producing types that alone identify it: by_maker()
    per_pair: int = 0  # files between any two tasks, if constant; 0: varies

    @property
    def table(self) -> dict[str, set[str]]:
        """use -> observed patterns."""
        out: dict[str, set[str]] = defaultdict(set)
        for file_group in self.file_groups:
            out[file_group.use].add(file_group.pattern)
        return dict(out)

    @property
    def patterns(self) -> set[str]:
        """All observed patterns, "" for none."""
        return {file_group.pattern for file_group in self.file_groups}

    @property
    def decided(self) -> bool:
        """Whether the use determines the pattern."""
        return all(len(patterns) == 1 for patterns in self.table.values())

    @property
    def files(self) -> int:
        return sum(file_group.files for file_group in self.file_groups)

    @property
    def size_sum(self) -> int:
        return sum(file_group.size_sum for file_group in self.file_groups)

    @property
    def types(self) -> set[tuple[Types, Types]]:
        """(producing types, consuming types) of its files."""
        return {(file_group.producers, file_group.consumers) for file_group in self.file_groups}

    @property
    def samples(self) -> list[bytes]:
        """One path per file group."""
        return [file_group.samples[0][0] for file_group in self.file_groups]


def candidates_of_shapes(file_groups: Iterable[FileGroup]) -> list[Candidate]:
    """Return one candidate per shape."""
    by_shape: dict[bytes, list[FileGroup]] = defaultdict(list)
    for file_group in file_groups:
        by_shape[file_group.shape].append(file_group)
    return [Candidate(template_of_shape(shape), group) for shape, group in by_shape.items()]


def split(candidate: Candidate) -> tuple[list[Candidate], list[Candidate]]:
    """Split by types or a placeholder: (candidates whose use determines the pattern, mixed)."""
    if candidate.decided:
        return [candidate], []
    by_types: dict[tuple[Types, Types], list[FileGroup]] = defaultdict(list)
    for file_group in candidate.file_groups:
        by_types[file_group.producers, file_group.consumers].append(file_group)
    good: list[Candidate] = []
    mixed: list[Candidate] = []
    for file_groups in by_types.values():
        part = Candidate(candidate.template, file_groups, need="types")
        if part.decided:
            good.append(part)
            continue
        pinned = _pin(part)
        (good if pinned else mixed).extend(pinned or [part])
    return good, mixed


def _pin(candidate: Candidate) -> list[Candidate]:
    """Fix one placeholder to its few values if these determine the pattern; empty: none does."""
    parts = list(candidate.template.parts)
    for at, part in enumerate(parts):
        if part not in ("n", "word", "alnum"):  # hashes and dates do not recur
            continue
        hole = sum(isinstance(p, str) for p in parts[:at])
        by_value: dict[bytes, list[FileGroup]] = defaultdict(list)
        for file_group in candidate.file_groups:
            values = {
                (candidate.template.match(path) or ())[hole] for path, _ in file_group.samples
            }
            if len(file_group.samples) < file_group.files or len(values) > 4:
                break
            for value in values:
                by_value[value].append(file_group)
        else:
            fixed: list[Part]
            out = []
            for value, file_groups in by_value.items():
                fixed = [*parts[:at], value, *parts[at + 1 :]]
                out.append(Candidate(template_of(fixed), file_groups, need=candidate.need))
            if len(out) <= 8 and all(n.decided for n in out):
                return out
    return []
