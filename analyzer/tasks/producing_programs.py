"""Programs that identify the type of a task while the task runs.

A hint is set when a file is created, where processes are known but not tasks. From a recorded
run, this module finds the words of processes (schemas/commandline) that identify the type: that
of a task's outermost process whose word has one type only, anywhere in the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import column, distinct, finder
from tracehint.analyzer.tasks.tree import Bools, Ints, Tree, jump
from tracehint.schemas.commandline.programs import WRAPPERS, is_interpreter, process_word

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Segmentation
    from tracehint.schemas.store import Bundle


MAX_WORDS = 5_000  # words; if there are more, almost every task has its own
_GENERATIONS = 64
_ROUNDS = 16
_SEARCHED_WORDS = 16  # words of a command line that are searched for a script


def makers_of(bundle: Bundle, tree: Tree, segmented: Segmentation) -> tuple[dict[str, Any], ...]:
    """Return ({word, type, sure}, ...), sorted by word; see `Maker` of hintgen/hints/model.py."""
    word, words = _words(bundle.tables["processes"])
    if not words:
        return ()
    files = _files(bundle, tree)
    word[~_creating_epochs(tree, files)] = -1
    task, kind, kinds = _tasks(tree, segmented)
    type_of = _unambiguous_types(
        tree, word, task, kind, np.array([_is_type_word(w) for w in words])
    )
    known = np.flatnonzero(type_of >= 0)
    if len(known) > MAX_WORDS:
        return ()
    known_kind = _kind_of_epochs(tree, np.where(word >= 0, type_of[word], -1))
    unsure = set(_unidentified_types(tree, files, kind, known_kind).tolist())
    found = [
        {
            "word": words[at].decode(),
            "type": kinds[type_of[at]],
            "sure": int(type_of[at]) not in unsure,
        }
        for at in known.tolist()
    ]
    return tuple(sorted(found, key=lambda one: str(one["word"])))


def _words(processes: pa.Table) -> tuple[Ints, list[bytes]]:
    """Return (code of each epoch's word, -1 if it has none of its own; the words)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    argv = processes.column("argv").combine_chunks()
    if isinstance(argv, pa.ChunkedArray):
        argv = argv.chunk(0)
    offsets = np.asarray(argv.offsets.to_numpy(), np.int64)
    start, count = offsets[:-1], np.diff(offsets)
    at = pa.array(np.where(count > 0, start, 0), mask=count == 0)
    first = argv.values.take(at).dictionary_encode()
    simple = np.array([not is_interpreter(w or b"") for w in first.dictionary.to_pylist()], bool)
    codes = pc.fill_null(first.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    numbers: dict[bytes, int] = {}
    own = [_number(numbers, process_word([w or b""])) for w in first.dictionary.to_pylist()]
    word = np.where(codes >= 0, np.array([*own, -1])[codes], -1)
    looked_at = np.flatnonzero((codes >= 0) & ~np.append(simple, True)[codes])
    for epoch in looked_at.tolist():
        last = min(offsets[epoch + 1], offsets[epoch] + _SEARCHED_WORDS)
        line = argv.values.slice(offsets[epoch], last - offsets[epoch]).to_pylist()
        word[epoch] = _number(numbers, process_word([w or b"" for w in line]))
    return word, list(numbers)


def _number(numbers: dict[bytes, int], word: bytes) -> int:
    return numbers.setdefault(word, len(numbers)) if word else -1


def _is_type_word(word: bytes) -> bool:
    """Whether a word can identify a type: text, and no program that only starts others."""
    try:
        text = word.decode()
    except UnicodeDecodeError:
        return False
    readable = text.isprintable() and "\\" not in text
    return readable and text not in WRAPPERS and not is_interpreter(word)


def _tasks(tree: Tree, segmented: Segmentation) -> tuple[Ints, Ints, list[str]]:
    """Return (task of each epoch, code of its type or -1 for an engine process, the types)."""
    tasks = segmented.tasks
    place = finder(column(segmented.proc_task, "proc", -1))(tree.proc)
    task = np.where(place >= 0, column(segmented.proc_task, "task", -1)[place], -1)
    row = finder(column(tasks, "task", -1))(task)
    types = tasks.column("type").combine_chunks().dictionary_encode()
    codes = types.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    engine = tasks.column("engine").fill_null(False).to_numpy(zero_copy_only=False)
    kinds = [kind or "" for kind in types.dictionary.to_pylist()]
    named = np.array([bool(kind) for kind in kinds] + [False])[codes]
    codes = np.where(engine | ~named, -1, codes)
    return task, np.where(row >= 0, np.append(codes, -1)[row], -1), kinds


def _unambiguous_types(tree: Tree, word: Ints, task: Ints, kind: Ints, plain: Bools) -> Ints:
    """Return the only type of each word; -1: none, or several.

    A word with several types is skipped. This can make other processes of its tasks the outermost
    ones, whose words may also have several types: repeated until nothing changes.
    """
    usable = plain.copy()
    usable[word[(word >= 0) & (kind < 0)]] = False  # of an engine: above tasks of all types
    type_of = np.full(len(plain), -1, np.int64)
    for _ in range(_ROUNDS):
        shown = (word >= 0) & usable[word] & (kind >= 0)
        outer = shown & ~_has_shown_parent(tree, shown, task)
        pairs = distinct(word[outer] << 32 | kind[outer])
        meant, first, count = np.unique(pairs >> 32, return_index=True, return_counts=True)
        type_of[:] = -1
        type_of[meant[count == 1]] = pairs[first[count == 1]] & 0xFFFFFFFF
        if not (count > 1).any():
            return type_of
        usable[meant[count > 1]] = False
    type_of[:] = -1
    return type_of


def _forking_epochs(tree: Tree) -> Ints:
    """Return the epoch that forked each epoch's process."""
    return tree.parent[tree.head]


def _has_shown_parent(tree: Tree, shown: Bools, task: Ints) -> Bools:
    """Return whether `shown` has a process above each epoch in the same task."""
    above = _forking_epochs(tree)
    inside = (above >= 0) & (task[above] == task)
    below = np.zeros(len(shown), bool)
    for _ in range(_GENERATIONS):
        further = inside & (shown[above] | below[above])
        if np.array_equal(further, below):
            break
        below = further
    return below


def _kind_of_epochs(tree: Tree, own: Ints) -> Ints:
    """Return the type of the outermost known word above (or of) each epoch; -1 for none."""
    above, kind = _forking_epochs(tree), own
    for _ in range(_GENERATIONS):
        further = np.where((above >= 0) & (kind[above] >= 0), kind[above], own)
        if np.array_equal(further, kind):
            break
        kind = further
    return kind


@dataclass(frozen=True)
class _Files:
    """Files that were created, and files written through an inherited descriptor
    (`program > file`): positions of epochs, and file numbers."""

    maker: Ints
    made: Ints
    heir: Ints
    written: Ints


def _files(bundle: Bundle, tree: Tree) -> _Files:
    import pyarrow.compute as pc

    opens, find = bundle.tables["opens"], finder(tree.proc)
    given = pc.and_(pc.equal(opens.column("via"), "inherited"), _wrote(opens))
    columns = []
    for hit in (opens.column("created"), given):
        rows = opens.filter(pc.fill_null(hit, False))
        place, file = find(column(rows, "proc", -1)), column(rows, "file", -1)
        columns += [place[place >= 0], file[place >= 0]]
    return _Files(*columns)


def _wrote(opens: pa.Table) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.not_equal(opens.column("write_ops"), 0)


def _creating_epochs(tree: Tree, files: _Files) -> Bools:
    """Return the epochs that created files or wrote inherited ones, or forked such a process.
    Shims, wrappers that execed another program, and their helpers are left out."""
    behind = np.zeros(len(tree.proc), bool)
    behind[files.maker] = behind[files.heir] = True
    above = _forking_epochs(tree)
    for _ in range(_GENERATIONS):
        up = above[behind]
        up = up[up >= 0]
        if behind[up].all():
            break
        behind[up] = True
    return behind


def _unidentified_types(tree: Tree, files: _Files, kind: Ints, known: Ints) -> Ints:
    """Return the types with a file whose creator shows no type: neither itself, nor the program
    that it became, nor a program that inherited the file."""
    own = kind[files.maker]
    typed = known[files.maker] == own
    typed |= known[jump(tree.next)[files.maker]] == own
    typed |= np.isin(files.made, files.written[known[files.heir] == kind[files.heir]])
    return distinct(own[(own >= 0) & ~typed])
