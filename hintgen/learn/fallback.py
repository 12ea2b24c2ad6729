"""Fallback templates that also match names unlike the observed ones.

Two fallback levels below the observed shapes:
  by name   the shortest beginning and end of a name that distinguish its files from all
            others of the run: `{name}_area.fits`, `p{name}.fits`
  by types  any name, if the declared producing and consuming types are known
The more specific fallback level wins if both match.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from tracehint.analyzer.model import Analysis
from tracehint.hintgen.hints.model import Maker, Needs
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.template import MAX_AMBIGUOUS, Part, Template, ambiguity, template_of
from tracehint.hintgen.learn.candidates import Candidate, parts_of, tokens
from tracehint.hintgen.learn.filegroups import FileGroup, Types
from tracehint.hintgen.learn.groups import Naming

MAX_HEAD, MAX_TAIL = 2, 8  # tokens of a base name that a fallback level may fix

Key = tuple[bytes, tuple[bytes, ...], tuple[bytes, ...]]  # directory, head, tail


def _keys(shape: bytes) -> list[Key]:
    """Return all (directory, head, tail) that match the shape and fix a word, loosest first: fewest
    fixed words, since names of another run may not share them."""
    folder, slash, base = shape.rpartition(b"/")
    words = tokens(base)
    spoken = [word[:1].isalnum() for word in words]
    found: list[tuple[tuple[int, int, int], Key]] = []
    for tail in range(1, min(MAX_TAIL, len(words) - 1) + 1):
        if spoken[-tail] or words[-tail].startswith(b"\x00"):
            continue  # the end of a name starts at a separator
        ending = sum(spoken[-tail:])
        for head in range(min(MAX_HEAD, len(words) - tail - 1) + 1):
            fixed = ending + sum(spoken[:head])
            if fixed:
                key = (folder + slash, tuple(words[:head]), tuple(words[len(words) - tail :]))
                found.append(((fixed, head, head + tail), key))
    return [key for _, key in sorted(found, key=lambda ranked: ranked[0])]


def _find_deciders(candidates: list[Candidate]) -> tuple[bool, bool]:
    """Return whether the name alone, and whether the declared use, determines the pattern."""
    patterns: set[str] = set()
    table: dict[str, set[str]] = defaultdict(set)
    for candidate in candidates:
        patterns |= candidate.patterns
        for use, seen in candidate.table.items():
            table[use] |= seen
    return len(patterns) == 1, all(len(seen) == 1 for seen in table.values())


def by_name(candidates: list[Candidate]) -> list[Candidate]:
    """Generalise `candidates` by name (all candidates of the run, including unhinted ones)."""
    members: dict[Key, dict[int, Candidate]] = defaultdict(dict)
    keys_of = cache(_keys)
    for candidate in candidates:
        for shape in {file_group.shape for file_group in candidate.file_groups}:
            for key in keys_of(shape):
                members[key][id(candidate)] = candidate
    chosen: dict[tuple[Key, Needs], list[Candidate]] = {}
    verdict_of: dict[Needs, int] = {"": 0, "use": 1}
    verdicts = {key: _find_deciders(list(group.values())) for key, group in members.items()}
    for candidate in candidates:
        if not any(candidate.patterns):
            continue
        for shape in sorted({file_group.shape for file_group in candidate.file_groups}):
            keys = keys_of(shape)
            for need, verdict in verdict_of.items():
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


def _name_candidate(key: Key, need: Needs, group: list[Candidate]) -> Candidate | None:
    folder, head, tail = key
    parts: list[Part] = [
        *parts_of(folder),
        *parts_of(b"".join(head)),
        "name",
        *parts_of(b"".join(tail)),
    ]
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
    """Return candidates for any name by (producing, consuming types) that determine the pattern.

    `tasks`: tasks in the run. If most tasks have a type of their own, types do not carry over to
    another run and there are no such candidates. `per_pair`: see `facts.files_per_pair`.
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
            by_end[_extension_of(file_group.shape)].append(file_group)
        parts = [_typed_candidate(end, part, most) for end, part in by_end.items() if end]
        out += [candidate for candidate in parts if candidate.decided]
    return [candidate for candidate in out if any(candidate.patterns)]


def _extension_of(shape: bytes) -> bytes:
    base = shape.rpartition(b"/")[2]
    stem, dot, end = base.rpartition(b".")
    return dot + end if stem else b""


def _typed_candidate(end: bytes, file_groups: list[FileGroup], per_pair: int) -> Candidate:
    template = template_of(["dirs", "name", *parts_of(end)])
    return Candidate(template, file_groups, need="types", level=2, per_pair=per_pair)


MAX_NAMES = 50_000  # names of a run; families are not searched in larger runs
MEMBERS = 40  # names checked per file group
LONGEST_HEAD = 3  # maximum characters before the common part
MAX_ENDS = 4  # separators tried as the end of the common part
MIN_STEM = 4  # minimum characters of the common part
MAX_SIBLINGS = 8

Affixes = tuple[bytes, bytes]  # text before and after the common part


def affixes(path: bytes) -> Iterator[Affixes]:
    """Yield ways to divide a path into head + common part + tail, longest common part first."""
    folder, slash, base = path.rpartition(b"/")
    ends = [i for i in range(1, len(base)) if base[i : i + 1] in b"._-"][-MAX_ENDS:]
    for end in (len(base), *reversed(ends)):
        for head in range(min(LONGEST_HEAD, end - MIN_STEM) + 1):
            yield folder + slash + base[:head], base[end:]


def has_few_names(candidates: list[Candidate]) -> bool:
    """Whether families are searched: the run has at most MAX_NAMES names."""
    return (
        sum(
            len(file_group.samples)
            for candidate in candidates
            for file_group in candidate.file_groups
        )
        <= MAX_NAMES
    )


def by_family(candidates: list[Candidate]) -> list[Candidate]:
    """Return candidates for names whose variable part they share with other names of the run."""
    if not has_few_names(candidates):
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
    """Return the families with a prefix, `c{name}_area.fits`, without the condition on siblings.

    A template of one of `others` is omitted: that candidate covers all names that match it.
    """
    taken = {candidate.template.text for candidate in others}
    return [
        replace(candidate, siblings=())
        for candidate in families
        if _has_prefix(candidate) and candidate.template.text not in taken
    ]


def _has_prefix(candidate: Candidate) -> bool:
    head = candidate.template.parts[0]
    return isinstance(head, bytes) and not head.endswith(b"/")


def _siblings(
    candidate: Candidate, siblings: dict[bytes, set[Affixes]]
) -> tuple[Affixes, tuple[Affixes, ...]] | None:
    """Return the affixes of the candidate's names, and those of the names that always go with
    them; None: no such names."""
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
    """Merge a group into one candidate; None if neither name nor use determines the pattern."""
    template = template_of([own[0], "name", own[1]])
    beside = tuple(_text(head) + "{name}" + _text(tail) for head, tail in others[:MAX_SIBLINGS])
    file_groups = [file_group for candidate in group for file_group in candidate.file_groups]
    candidate = Candidate(template, file_groups, level=1, siblings=beside)
    if len(candidate.patterns) > 1:
        candidate.need = "use"
    labelled = candidate.decided and any(candidate.patterns)
    return candidate if labelled and _names_groups(candidate) else None


def _names_groups(candidate: Candidate) -> bool:
    """Whether the common part names the groups, or none matter; if not, other levels may."""
    candidate_groups = Naming(candidate)
    return all(
        candidate_groups.captures(
            [c for c in candidate.file_groups if c.pattern == pattern], by_producer
        )[0]
        for pattern, by_producer in (("reduce", False), ("distribute", True))
        if pattern in candidate.patterns
    )


def _text(part: bytes) -> str:
    return to_text(part, braces=True)


def makers_of(analyses: Sequence[Analysis]) -> tuple[Maker, ...]:
    """Return the words that identify one task type, the same one in all runs with that word."""
    found: dict[str, Maker | None] = {}
    for analysis in analyses:
        for one in analysis.run.get("makers") or ():
            maker = Maker(str(one["word"]), str(one["type"]), bool(one["sure"]))
            before = found.setdefault(maker.word, maker)
            if before is None or before.type != maker.type:
                found[maker.word] = None
            elif not maker.sure:
                found[maker.word] = maker
    return tuple(maker for _, maker in sorted(found.items()) if maker is not None)


def by_maker(candidates: Iterable[Candidate], makers: Sequence[Maker]) -> list[Candidate]:
    """Return candidates by producing type for files of one base name with different patterns."""
    known = {maker.type for maker in makers}
    by_name: dict[bytes, list[FileGroup]] = defaultdict(list)
    for candidate in candidates:
        for group in candidate.file_groups:
            by_name[group.shape.rpartition(b"/")[2]].append(group)
    return [
        found
        for groups in by_name.values()
        if len({group.pattern for group in groups}) > 1
        for kind in sorted(known & _kinds(groups))
        if (found := _candidate(kind, groups)) is not None
    ]


def _kinds(groups: Iterable[FileGroup]) -> set[str]:
    return {kind for group in groups for kind in group.producers}


def _candidate(kind: str, groups: Sequence[FileGroup]) -> Candidate | None:
    """Return a candidate for the files of one producing type; None if their patterns differ."""
    own = [group for group in groups if kind in group.producers]
    template = _template([group.shape for group in own])
    if len({group.pattern for group in own}) > 1 or not own[0].pattern or template is None:
        return None
    return Candidate(template, own, need="types", made_by=(kind,))


def _template(shapes: Sequence[bytes]) -> Template | None:
    """Return the template of the name in its directory if constant, otherwise in any directory."""
    folders = {shape.rpartition(b"/")[:2] for shape in shapes}
    folder: Sequence[Part] = ("dirs",)
    if len(folders) == 1:
        folder = parts_of(b"".join(folders.pop()))
    template = template_of([*folder, *parts_of(shapes[0].rpartition(b"/")[2])])
    return None if ambiguity(template) > MAX_AMBIGUOUS else template
