"""What the user decided about tasks: `--split NAME` looks inside, `--whole NAME` does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.tasks.classify import Classes
from tracehint.analyzer.tasks.describe import describe
from tracehint.analyzer.tasks.plain import plain_descriptions
from tracehint.analyzer.tasks.tree import Bools, Ints, Tree
from tracehint.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Options


@dataclass(frozen=True)
class ChosenCuts:
    """Per epoch: on the way to a program that is to be cut, and one that is to be one task."""

    split: Bools
    whole: Bools


def choose(processes: pa.Table, tree: Tree, classes: Classes, options: Options) -> ChosenCuts:
    """The epochs that `options.split` and `options.whole` mean.

    A name is the program or script that a process runs, or the type of a task. Raises InputError
    for a name that nothing in the run has, and for one that is to be both.
    """
    none = np.zeros(len(tree.proc), bool)
    if not options.split and not options.whole:
        return ChosenCuts(none, none)
    both = sorted({*options.split} & {*options.whole})
    if both:
        raise InputError(f"{both[0]}: to be split and whole", "Leave one of the two out.")
    types = _types(processes)
    split = none.copy()
    for name in options.split:
        split |= _on_the_way(tree, _called(name, "split", types, classes))
    whole = none.copy()
    for name in options.whole:
        whole |= _called(name, "whole", types, classes)
    return ChosenCuts(split, whole)


def _called(name: str, option: str, types: pa.Array, classes: Classes) -> Bools:
    """Epochs of this program or type."""
    import pyarrow.compute as pc

    of_type = pc.equal(types, name).to_numpy(zero_copy_only=False)
    program = np.array([c.program == name for c in classes.commands], bool)[classes.of]
    found = np.asarray((of_type | program) & ~classes.kind_is("fork"), bool)
    if not found.any():
        raise InputError(
            f"--{option} {name}: the run has no program and no type of task of that name",
            "Give a program or script without its directory, as `tracehint analyze` prints types.",
        )
    return found


def _types(processes: pa.Table) -> pa.Array:
    """The type that a task would have that began with this epoch."""
    import pyarrow as pa
    import pyarrow.compute as pc

    argv = processes.column("argv").combine_chunks()
    columns, easy = plain_descriptions(argv)
    rest = pa.array(~easy)
    texts = [describe(words or ()).type for words in argv.filter(rest).to_pylist()]
    return pc.replace_with_mask(columns["type"], rest, pa.array(texts, pa.string()))


def _on_the_way(tree: Tree, found: Bools) -> Bools:
    """These epochs, all above them, and those of the same process before."""
    result = found.copy()
    at: Ints = np.flatnonzero(found)
    for _ in range(len(found)):
        above = tree.up[at]
        at = np.unique(above[above >= 0])
        at = at[~result[at]]
        if not len(at):
            break
        result[at] = True
    # the first epoch of a process stands for it
    result[tree.head[np.flatnonzero(result)]] = True
    return result
