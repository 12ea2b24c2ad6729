"""Learning: files known by their sibling names.

`p{name}.fits` is a projected image where `{name}.fits` and `c{name}.fits` are files of the run as
well, whatever the images are called there. So data sets with other names share rules, where all
names of the next run are known beforehand (a dry run, an earlier listing).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.template import template_of
from tracehint.hintgen.learn.candidates import Candidate
from tracehint.hintgen.learn.groups import Told

MAX_NAMES = 50_000  # names of a run, above which no families are looked for
MEMBERS = 40  # names per file group that must agree
LONGEST_HEAD = 3  # characters before the common part
MAX_ENDS = 4  # places where the common part may end
MIN_STEM = 4  # characters
MAX_SIBLINGS = 8

Affixes = tuple[bytes, bytes]  # what stands before and after the common part


def affixes(path: bytes) -> Iterator[Affixes]:
    """Ways to see a path as head + common part + tail, with the longest common part first."""
    folder, slash, base = path.rpartition(b"/")
    ends = [i for i in range(1, len(base)) if base[i : i + 1] in b"._-"][-MAX_ENDS:]
    for end in (len(base), *reversed(ends)):
        for head in range(min(LONGEST_HEAD, end - MIN_STEM) + 1):
            yield folder + slash + base[:head], base[end:]


def looked_for(candidates: list[Candidate]) -> bool:
    """False where the run has too many names."""
    return (
        sum(
            len(file_group.samples)
            for candidate in candidates
            for file_group in candidate.file_groups
        )
        <= MAX_NAMES
    )


def by_family(candidates: list[Candidate]) -> list[Candidate]:
    """Candidates for names that differ only in what they share with other names of the run."""
    if not looked_for(candidates):
        return []
    paths = {
        path
        for candidate in candidates
        for file_group in candidate.file_groups
        for path, _ in file_group.samples
    }
    siblings: dict[bytes, set[Affixes]] = defaultdict(set)
    for path in paths:
        for head, tail in affixes(path):
            siblings[path[len(head) : len(path) - len(tail)]].add((head, tail))
    alike: dict[tuple[Affixes, tuple[Affixes, ...]], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        found = _siblings(candidate, siblings)
        if found is not None:
            alike[found].append(candidate)
    made = [
        _family_candidate(*key, group) for key, group in sorted(alike.items(), key=lambda i: i[0])
    ]
    return [candidate for candidate in made if candidate is not None]


def by_mark(families: list[Candidate], others: list[Candidate]) -> list[Candidate]:
    """Candidates for a mark in front alone, `c{name}_area.fits`, where siblings cannot be asked.

    Not where one of `others` has that template: it was made of all names that fit it.
    """
    taken = {candidate.template.text for candidate in others}
    return [
        replace(candidate, siblings=())
        for candidate in families
        if _mark(candidate) and candidate.template.text not in taken
    ]


def _mark(candidate: Candidate) -> bool:
    head = candidate.template.parts[0]
    return isinstance(head, bytes) and not head.endswith(b"/")


def _siblings(
    candidate: Candidate, siblings: dict[bytes, set[Affixes]]
) -> tuple[Affixes, tuple[Affixes, ...]] | None:
    """How the candidate's names are made, and what is always there beside them."""
    members = [
        path for file_group in candidate.file_groups for path, _ in file_group.samples[:MEMBERS]
    ]
    if len(members) < 2:
        return None
    best: tuple[Affixes, tuple[Affixes, ...]] | None = None
    for head, tail in affixes(members[0]):
        fits = all(
            m.startswith(head) and m.endswith(tail) and len(m) - len(head) - len(tail) >= MIN_STEM
            for m in members
        )
        if not fits:
            continue
        stems = [m[len(head) : len(m) - len(tail)] for m in members]
        if any(b"/" in stem for stem in stems):
            continue
        common = set.intersection(*(siblings[stem] for stem in stems)) - {(head, tail)}
        if common and (best is None or len(common) > len(best[1])):
            best = (head, tail), tuple(sorted(common))
    return best


def _family_candidate(
    own: Affixes, others: tuple[Affixes, ...], group: list[Candidate]
) -> Candidate | None:
    """One candidate for all of the group; None where neither name nor use tells the pattern."""
    template = template_of([own[0], "name", own[1]])
    beside = tuple(_text(head) + "{name}" + _text(tail) for head, tail in others[:MAX_SIBLINGS])
    file_groups = [file_group for candidate in group for file_group in candidate.file_groups]
    candidate = Candidate(template, file_groups, level=1, siblings=beside)
    if len(candidate.patterns) > 1:
        candidate.need = "use"
    told = candidate.decided and any(candidate.patterns)
    return candidate if told and _groups_told(candidate) else None


def _groups_told(candidate: Candidate) -> bool:
    """True unless groups matter and the common part does not name them: other levels may."""
    told = Told(candidate)
    return all(
        told.captures([c for c in candidate.file_groups if c.pattern == pattern], by_producer)[0]
        for pattern, by_producer in (("reduce", False), ("distribute", True))
        if pattern in candidate.patterns
    )


def _text(part: bytes) -> str:
    return to_text(part, braces=True)
