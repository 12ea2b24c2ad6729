"""Learning: files of one shape together, mixed ones split.

A Candidate is a template with the file groups (filegroups.py) that it covers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tracehint.hintgen.hints.fitting import Part
from tracehint.hintgen.hints.template import Template, template_of
from tracehint.hintgen.learn.filegroups import FileGroup, Types
from tracehint.hintgen.learn.shapes import template_of_shape


@dataclass
class Candidate:
    """A template and what it covers."""

    template: Template
    file_groups: list[FileGroup]
    need: str = ""  # what must be declared for it to fire: "", "use", "types"
    exclude: list[Template] = field(default_factory=list)
    level: int = 0  # 0 seen shapes, 1 generalised by name, 2 by types
    siblings: tuple[str, ...] = ()  # templates of names that must be there: family.py
    made_by: Types = ()  # types of tasks by which alone it is told: makers.py
    per_pair: int = 0  # files between the same two tasks, where it was always that many; 0: varied

    @property
    def table(self) -> dict[str, set[str]]:
        """use -> patterns seen."""
        out: dict[str, set[str]] = defaultdict(set)
        for file_group in self.file_groups:
            out[file_group.use].add(file_group.pattern)
        return dict(out)

    @property
    def patterns(self) -> set[str]:
        """All patterns seen, "" for none."""
        return {file_group.pattern for file_group in self.file_groups}

    @property
    def decided(self) -> bool:
        """True when the use tells the pattern."""
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
    """One candidate per shape."""
    by_shape: dict[bytes, list[FileGroup]] = defaultdict(list)
    for file_group in file_groups:
        by_shape[file_group.shape].append(file_group)
    return [Candidate(template_of_shape(shape), group) for shape, group in by_shape.items()]


def split(candidate: Candidate) -> tuple[list[Candidate], list[Candidate]]:
    """(candidates whose use tells the pattern, mixed ones that nothing known beforehand splits)."""
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
    """Fix one placeholder to the few values that tell the pattern; empty: none does."""
    parts = list(candidate.template.parts)
    for at, part in enumerate(parts):
        if part not in ("n", "word", "alnum"):  # a hash or date never comes again
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
