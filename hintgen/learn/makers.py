"""Rules by the type of the task that makes a file, where its name does not tell how it is used.

A store that places a file when it is created, and who tells it then, know the program that makes
it; its readers are still to come. So these rules need nothing but the makers' types.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tracehint.analyzer.model import Analysis
from tracehint.hintgen.hints.fitting import Part
from tracehint.hintgen.hints.model import Maker
from tracehint.hintgen.hints.template import MAX_AMBIGUOUS, Template, ambiguity, template_of
from tracehint.hintgen.learn.candidates import Candidate
from tracehint.hintgen.learn.filegroups import FileGroup
from tracehint.hintgen.learn.shapes import parts_of


def makers_of(analyses: Sequence[Analysis]) -> tuple[Maker, ...]:
    """Words that mean one type, the same in all runs that have them."""
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
    """Candidates for files of one base name that tasks of several types use differently."""
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
    """The files of one type, where all of them are used in the same way."""
    own = [group for group in groups if kind in group.producers]
    template = _template([group.shape for group in own])
    if len({group.pattern for group in own}) > 1 or not own[0].pattern or template is None:
        return None
    return Candidate(template, own, need="types", made_by=(kind,))


def _template(shapes: Sequence[bytes]) -> Template | None:
    """The name in its directory, where that is always the same one, else in any."""
    folders = {shape.rpartition(b"/")[:2] for shape in shapes}
    folder: Sequence[Part] = ("dirs",)
    if len(folders) == 1:
        folder = parts_of(b"".join(folders.pop()))
    template = template_of([*folder, *parts_of(shapes[0].rpartition(b"/")[2])])
    return None if ambiguity(template) > MAX_AMBIGUOUS else template
