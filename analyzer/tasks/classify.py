"""Class of each process epoch by the command that it started, decided once per distinct one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.tasks.engine_processes import ENGINES, Command
from tracehint.analyzer.tasks.tree import Bools, Ints
from tracehint.schemas.commandline.programs import (
    INTERPRETERS,
    LAUNCHERS,
    MULTI_CALL,
    SHELLS,
    WRAPPERS,
    base_name,
    is_shim,
    script_of,
    shell_parts,
)

if TYPE_CHECKING:
    import pyarrow as pa

_WORDS = 6  # words of a command on which its class may depend
_MAX_BYTES = (255, 255, 64, 64, 64, 64)  # maximum bytes of each
_SUBMITTERS = """bjobs bkill bsub condor_q condor_rm condor_submit flux-submit llsubmit qalter qdel
    qstat qsub sacct sbatch scancel scontrol sinfo squeue"""
SUBMITTERS = frozenset(_SUBMITTERS.split())
_SCRIPT_SUFFIXES = (".sh", ".bash", ".zsh", ".ksh", ".dash")
_JAVA_FORK = "jspawnhelper"  # execed by Java in the new process, before the program itself
_WORKER_COPIES = re.compile(r"from multiprocessing\.|from loky\.|from joblib\.externals")
# Patterns for any word of the argument list: a Snakemake that is one job of another; a Java that
# is Nextflow; a worker process of the program above it (R's parallel, Dask).
_FLAGS = (
    r"^--target-jobs$",
    r"^nextflow\.cli\.|/nextflow[^/]*\.jar$",
    r"parallel:::\.?(?:work|slave)RSOCK|RSOCKnode\.R|^distributed\.cli\.dask_worker$",
)
_SNAKEMAKE_JOB, _NEXTFLOW, _WORKER = "1", "2", "3"


@dataclass(frozen=True)
class Classes:
    """Per epoch the index in `commands` of what it started; 0: a forked copy without an exec.

    `engine`: code in ENGINES of each command, -1 for none.
    """

    of: Ints
    commands: tuple[Command, ...]
    engine: Ints

    def kind_is(self, *kinds: str) -> Bools:
        """Return per epoch whether its command is of one of the kinds."""
        table = np.array([c.kind in kinds for c in self.commands])
        return table[self.of]

    @property
    def engine_of(self) -> Ints:
        """Code in ENGINES of each epoch, -1 for none."""
        return self.engine[self.of]


def classify(processes: pa.Table) -> Classes:
    """Return the class of each epoch, from its argument list (not from its behaviour)."""
    import pyarrow as pa

    argv = processes.column("argv").combine_chunks()
    if isinstance(argv, pa.ChunkedArray):  # no rows
        argv = argv.chunk(0) if argv.num_chunks else pa.array([], argv.type)
    keys, flags = _keys(argv)
    encoded = keys.dictionary_encode()
    commands = [Command("fork", "", ())]
    codes: dict[Command, int] = {commands[0]: 0}
    lookup = np.empty(len(encoded.dictionary), np.int64)
    for i, key in enumerate(encoded.dictionary.to_pylist()):
        command = command_of(key)
        lookup[i] = codes.setdefault(command, len(codes))
        if lookup[i] == len(commands):
            commands.append(command)
    of = lookup[encoded.indices.to_numpy(zero_copy_only=False)] if len(keys) else flags
    engine = np.array([_engine_code(c) for c in commands], np.int64)
    return Classes(np.asarray(of, np.int64), tuple(commands), engine)


def _keys(argv: pa.ListArray) -> tuple[pa.Array, Ints]:
    """Return the flag and bounded words of each argument list, joined by NUL, and the flags."""
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = np.asarray(argv.offsets.to_numpy(), np.int64)
    first, count = offsets[:-1], np.diff(offsets)
    values = argv.values
    flags = np.zeros(len(count), np.int64)
    for number, flag in enumerate(_FLAGS, 1):
        found = pc.match_substring_regex(values, flag).fill_null(False)
        hits = np.concatenate(([0], np.cumsum(found.to_numpy(zero_copy_only=False))))
        flags[hits[offsets[1:]] > hits[first]] = number
    parts = [pa.array(flags.astype(str)).cast(pa.binary())]
    family = None
    for i, cut in enumerate(_MAX_BYTES[:_WORDS]):
        at = pa.array(np.where(count > i, first + i, 0), mask=count <= i)
        word = pc.binary_slice(pc.fill_null(values.take(at), b""), 0, cut)
        if family is None:
            family = _needs_words(word)
        else:
            word = pc.if_else(family, word, pa.scalar(b""))
        parts.append(word)
    return pc.binary_join_element_wise(*parts, b"\0"), flags


def _needs_words(word: pa.Array) -> pa.Array:
    """Return whether the class depends on more than the first word, decided per distinct word."""
    import pyarrow as pa

    encoded = word.dictionary_encode()
    answers = []
    for first in encoded.dictionary.to_pylist():
        name = base_name(first)
        families = (SHELLS, INTERPRETERS, WRAPPERS, MULTI_CALL)
        answers.append(any(name in f for f in families) or name in _INSPECTED_WORDS)
    return pa.array(answers, pa.bool_()).take(encoded.indices)


# Programs whose arguments the engine rules inspect, and the number of words.
_INSPECTED_WORDS = dict.fromkeys(
    ("tracehint", "docker", "podman", "singularity", "apptainer", "git", "conda"), 2
) | {"xargs": _WORDS}


def command_of(key: bytes) -> Command:
    """Return the command of one key of `_keys`."""
    head, *raw = key.split(b"\0")
    while raw and not raw[-1]:
        raw.pop()
    if not raw:
        return Command("fork", "", ())
    words = tuple(w.decode("utf-8", "backslashreplace") for w in raw)
    flag = head.decode("ascii", "replace")
    if flag == _WORKER:
        return Command("fork", "", ())
    name = base_name(raw[0])
    if name in MULTI_CALL and len(raw) > 1:  # `busybox sh -c TEXT`
        words, raw = words[1:], raw[1:]
        name = base_name(raw[0])
    if name == _JAVA_FORK:
        return Command("fork", "", ())
    if name in SHELLS:
        return _shell(words, raw)
    program = name
    if name in INTERPRETERS:
        program = base_name(script_of(name, raw[1:]) or raw[0])
        if any(_WORKER_COPIES.search(w) for w in words[1:]):
            return Command("fork", "", ())  # a worker process of its parent
    if name == "java" and flag == _NEXTFLOW:
        program = "nextflow"
    kind = _kind(program)
    if kind in ("wrapper", "launcher", "submitter"):
        return Command(kind, program, ())
    if program.endswith(_SCRIPT_SUFFIXES):
        return Command("script", program, ())
    inspected = words[: _INSPECTED_WORDS.get(name, 0)]
    job_of = "snakemake" if program == "snakemake" and flag == _SNAKEMAKE_JOB else ""
    return Command(kind, program, inspected, job_of)


def _kind(program: str) -> str:
    if program in WRAPPERS:
        return "wrapper"
    if program in LAUNCHERS:
        return "launcher"
    return "submitter" if program in SUBMITTERS else "program"


def _shell(words: tuple[str, ...], raw: list[bytes]) -> Command:
    """Classify `sh -c TEXT` as inline, `sh FILE` as script; keep the words that engines inspect."""
    text, script = shell_parts(raw[1:])
    if text is not None:
        return Command("inline", base_name(raw[0]), (words[0],))
    if script is None:
        return Command("script", base_name(raw[0]), (words[0],))  # reads its standard input
    name = base_name(script)
    if is_shim(script):
        return Command("wrapper", name, ())
    if _engine_code(Command("program", name, ())) >= 0:
        return Command("program", name, ())  # a launcher script: `bash nextflow run ...`
    return Command("script", name, (words[0], name))


def _engine_code(command: Command) -> int:
    return next((i for i, engine in enumerate(ENGINES) if engine.matches(command)), -1)
