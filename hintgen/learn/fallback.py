"""Learning, second half: templates that also hold where names differ more.

Two fallback levels below the shapes that were seen:
  by name   the shortest beginning and end of a name that tell its files from all
            others of the run: `{name}_area.fits`, `p{name}.fits`
  by types  any name, where the declared producing and consuming types are known
The more specific fallback level wins when both fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache

from tracehint.hintgen.hints.fitting import Part
from tracehint.hintgen.hints.template import MAX_AMBIGUOUS, ambiguity, template_of
from tracehint.hintgen.learn.candidates import Candidate
from tracehint.hintgen.learn.filegroups import FileGroup, Types
from tracehint.hintgen.learn.shapes import parts_of, tokens

MAX_HEAD, MAX_TAIL = 2, 8  # tokens of a base name that a fallback level may fix

Key = tuple[bytes, tuple[bytes, ...], tuple[bytes, ...]]  # directory, head, tail


def _keys(shape: bytes) -> list[Key]:
    """Every (head, tail) that covers the shape and says something, loosest first: fixed words count
    most, they are what another run's names may not share."""
    folder, slash, base = shape.rpartition(b"/")
    words = tokens(base)
    spoken = [word[:1].isalnum() for word in words]
    found: list[tuple[tuple[int, int, int], Key]] = []
    for tail in range(1, min(MAX_TAIL, len(words) - 1) + 1):
        if spoken[-tail] or words[-tail].startswith(b"\x00"):
            continue  # the end of a name starts at a separator
        said = sum(spoken[-tail:])
        for head in range(min(MAX_HEAD, len(words) - tail - 1) + 1):
            fixed = said + sum(spoken[:head])
            if fixed:
                key = (folder + slash, tuple(words[:head]), tuple(words[len(words) - tail :]))
                found.append(((fixed, head, head + tail), key))
    return [key for _, key in sorted(found, key=lambda ranked: ranked[0])]


def _agree(candidates: list[Candidate]) -> tuple[bool, bool]:
    """(the name alone decides, the declared use decides) over the candidates together."""
    patterns: set[str] = set()
    table: dict[str, set[str]] = defaultdict(set)
    for candidate in candidates:
        patterns |= candidate.patterns
        for use, seen in candidate.table.items():
            table[use] |= seen
    return len(patterns) == 1, all(len(seen) == 1 for seen in table.values())


def by_name(candidates: list[Candidate]) -> list[Candidate]:
    """Generalised candidates for `candidates` (all candidates of the run, unhinted ones too)."""
    members: dict[Key, dict[int, Candidate]] = defaultdict(dict)
    keys_of = cache(_keys)
    for candidate in candidates:
        for shape in {file_group.shape for file_group in candidate.file_groups}:
            for key in keys_of(shape):
                members[key][id(candidate)] = candidate
    chosen: dict[tuple[Key, str], list[Candidate]] = {}
    verdicts = {key: _agree(list(group.values())) for key, group in members.items()}
    for candidate in candidates:
        if not any(candidate.patterns):
            continue
        for shape in sorted({file_group.shape for file_group in candidate.file_groups}):
            keys = keys_of(shape)
            for need, verdict in (("", 0), ("use", 1)):
                for key in keys:
                    if verdicts[key][verdict]:
                        chosen[key, need] = list(members[key].values())
                        break
    return [
        made
        for (key, need), group in sorted(chosen.items())
        if not (need and (key, "") in chosen)
        and (made := _name_candidate(key, need, group)) is not None
    ]


def _name_candidate(key: Key, need: str, group: list[Candidate]) -> Candidate | None:
    folder, head, tail = key
    parts: list[Part] = [
        *parts_of(folder), *parts_of(b"".join(head)), "name", *parts_of(b"".join(tail)),
    ]  # fmt: skip  # a table
    template = template_of(parts)
    if ambiguity(template) > MAX_AMBIGUOUS:
        return None
    return Candidate(
        template,
        [file_group for candidate in group for file_group in candidate.file_groups],
        need=need,
        level=1,
    )


def by_types(
    file_groups: list[FileGroup], tasks: int, per_pair: Mapping[tuple[Types, Types], int]
) -> list[Candidate]:
    """Candidates for any name, per (producing types, consuming types), where these decide.

    `tasks`: tasks in the run. Where nearly every task has a type of its own, types
    say nothing about another run, and there are none of these candidates. `per_pair`: see
    `facts.files_per_pair`.
    """
    kinds = {
        name
        for file_group in file_groups
        for name in (*file_group.producers, *file_group.consumers)
    }
    if not kinds or len(kinds) > max(12, tasks // 2):
        return []
    by_pair: dict[tuple[Types, Types], list[FileGroup]] = defaultdict(list)
    for file_group in file_groups:
        by_pair[file_group.producers, file_group.consumers].append(file_group)
    out: list[Candidate] = []
    for types, group in by_pair.items():
        most = per_pair.get(types, 0)
        whole = _typed_candidate(b"", group, most)
        if whole.decided:
            out.append(whole)
            continue
        by_end: dict[bytes, list[FileGroup]] = defaultdict(list)
        for file_group in group:
            by_end[_end(file_group.shape)].append(file_group)
        parts = [_typed_candidate(end, part, most) for end, part in by_end.items() if end]
        out += [candidate for candidate in parts if candidate.decided]
    return [candidate for candidate in out if any(candidate.patterns)]


def _end(shape: bytes) -> bytes:
    base = shape.rpartition(b"/")[2]
    stem, dot, end = base.rpartition(b".")
    return dot + end if stem else b""


def _typed_candidate(end: bytes, file_groups: list[FileGroup], per_pair: int) -> Candidate:
    template = template_of(["dirs", "name", *parts_of(end)])
    return Candidate(template, file_groups, need="types", level=2, per_pair=per_pair)
