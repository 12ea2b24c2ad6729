"""Replace names, paths, hosts and arguments of a bundle by pseudonyms, keeping its structure."""

from __future__ import annotations

import dataclasses
import hmac
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tracehint.analyzer.arrays import Bools, ints
from tracehint.hintgen.text.masks import zero_digits
from tracehint.schemas.writer import BundleWriter, whole_bundle

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.manifest import Manifest
    from tracehint.schemas.store import Bundle


_SHELLS = "sh bash dash ash zsh ksh mksh yash rbash csh tcsh fish busybox"
_SHELL_WORDS = """
set euo eu ue pipefail exec eval do done if then else elif fi for in while until case esac cd
export function select time true false echo printf test command builtin source wait trap exit
"""
_WRAPPERS = """
env nice nohup timeout setsid stdbuf unbuffer ionice chrt taskset numactl prlimit sudo flock gtime
catchsegv catch segv chronic script strace ltrace gdb perf valgrind singularity apptainer docker
podman udocker conda mamba micromamba run proot unshare
"""
_ENGINES = """
make gmake ninja makeflow work queue worker vine factory snakemake nextflow parallel xargs parsl
process pool interchange dask scheduler cwltool cwl toil runner pegasus kickstart swift turbine
pilot condor dagman slurm srun sbatch salloc slurmstepd mpirun mpiexec orted prted hydra pmi proxy
orterun qsub bsub jsrun aprun flux luigi airflow cromwell tracehint resource monitor remake share
snakejob jobscript exitcode begin log out err trace stub nextflowlog makeflowlog batchlog joblog
runinfo lineage metadata locks incomplete auxiliary scripts archive iocache cache unit tests shadow
storage failed target jobs jobid cores rule
"""
_INTERPRETERS = """
python python2 python3 pypy perl ruby node nodejs java julia rscript r lua php tclsh octave awk gawk
mawk sed jar class path classpath
"""
_TOOLS = """
cat cp mv rm mkdir rmdir ln ls touch sort uniq head tail cut paste tr tee wc dd split join grep
egrep fgrep find diff cmp tar gzip gunzip bzip2 xz zstd zip unzip install rsync chmod chown chgrp
date sleep seq md5sum sha256sum basename dirname readlink realpath mktemp stat truncate sync uname
hostname id whoami which tput setfattr getfattr gcc cc g cpp c ld as ar cmake ldconfig lscpu ps
cc1 cc1plus collect2
"""
_PLACES = """
usr lib lib32 lib64 libx32 libexec bin sbin etc proc sys dev boot opt snap nix gnu cvmfs run var
selinux shm user tmp scratch home root local share include system library applications users data
work site dist packages pycache node modules pkgs git svn hg bzr tox nox venv virtualenv
mypy pytest ruff npm cargo rustup config ipython jupyter renv pyvenv cfg meta shims pyenv versions
x86 64 linux gnu so ld null redacted zero urandom random pts tty self fd maps status
"""
WORDS: frozenset[str] = frozenset(
    " ".join((_SHELLS, _SHELL_WORDS, _WRAPPERS, _ENGINES, _INTERPRETERS, _TOOLS, _PLACES)).split()
)
MAX_EXTENSION = 8  # maximum length of an extension that is kept, such as `.fits`


_TOKEN = re.compile(rb"[A-Za-z0-9\x80-\xff]+")
_PARTS = re.compile(rb"[0-9]+|[A-Za-z\x80-\xff]+")
_LETTERS = "bcfgijklmnqruvwxyz"  # without a d e h o p s t: `pass`, `token`, `key` need one of them
_LENGTH = 8
_ENDS = b"/ \t\n'\":;,)]}>|&"
_MAX_CACHED = 200_000  # maximum number of cached path components
_MAX_PARTS = 5  # more changes between letters and digits are a hash, not a counter
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_WITH_DIGITS = {
    word.encode().translate(_ZEROS) for word in WORDS if not (word.isalpha() or word.isdigit())
}


class Pseudonyms:
    """The mapping of one anonymised bundle; it cannot be reproduced without `key`."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._known: dict[bytes, bytes] = {}
        self._taken: set[bytes] = set()
        self._components: dict[bytes, bytes] = {}

    def replace(self, raw: bytes) -> bytes:
        """Replace the words of a text.

        >>> changed = Pseudonyms(b"k").replace(b"/usr/bin/make -f secret p_012.fits")
        >>> changed.startswith(b"/usr/bin/make -f "), changed.endswith(b"_012.fits")
        (True, True)
        >>> b"secret" in changed
        False
        """
        first, *rest = raw.split(b"/")
        done = self._components
        parts = [done.get(part) or self._component(part) for part in rest]
        return b"".join((self._replace_token(first), *parts))

    @staticmethod
    def reads_digits(layout: bytes) -> bool:
        """Whether the result may depend on a text's digits; `layout`: the text with digits as 0.

        >>> [Pseudonyms.reads_digits(text) for text in (b"run00/p_000.fits", b"/usr/lib00/a0b0c0d")]
        [False, True]
        """
        return any(
            token.lower() in _WITH_DIGITS or len(_PARTS.findall(token)) > _MAX_PARTS
            for token in _TOKEN.findall(layout)
        )

    def _component(self, part: bytes) -> bytes:
        """Replace a slash and the path component after it. The result is cached: it does not depend
        on the rest of the path, and most directories occur in many paths."""
        if len(self._components) >= _MAX_CACHED:
            self._components.clear()
        found = self._components[part] = self._replace_token(b"/" + part)
        return found

    def _replace_token(self, raw: bytes) -> bytes:
        return _TOKEN.sub(lambda match: self._token(match, raw), raw)

    def _token(self, match: re.Match[bytes], raw: bytes) -> bytes:
        token, start, end = match[0], match.start(), match.end()
        if token.isdigit() or token.lower().decode("latin-1") in WORDS:
            return token
        before = raw[start - 1 : start]
        if before == b"-" and len(token) == 1:
            return token  # an option of one letter
        if before == b"." and start > 1 and self._is_ending(token, raw, end):
            return token
        parts = _PARTS.findall(token)
        if len(parts) > _MAX_PARTS:
            return self._word(token)
        return b"".join(p if p.isdigit() else self._word(p) for p in parts)

    @staticmethod
    def _is_ending(token: bytes, raw: bytes, end: int) -> bool:
        after = raw[end : end + 1]
        return (
            len(token) <= MAX_EXTENSION
            and token.isascii()
            and token[:1].isalpha()
            and (not after or after in _ENDS)
        )

    def _word(self, word: bytes) -> bytes:
        found = self._known.get(word)
        if found is not None:
            return found
        for attempt in range(1000):
            seed = word + b"\0%d" % attempt
            number = int.from_bytes(hmac.digest(self._key, seed, "sha256")[:8])
            letters = _spell_number(number)
            if letters not in self._taken and letters.decode() not in WORDS:
                break
        self._taken.add(letters)
        self._known[word] = letters
        return letters


def _spell_number(number: int) -> bytes:
    base = len(_LETTERS)
    return "".join(_LETTERS[number // base**i % base] for i in range(_LENGTH)).encode()


def replace_words(texts: pa.Array, words: Pseudonyms) -> pa.Array:
    """Replace the words of distinct binary values, with the same result as `words.replace` on each.

    Words are processed in the order of the texts, so that equal texts have equal results.
    """
    if not len(texts):
        return texts
    encoded = zero_digits(texts).dictionary_encode()
    code = ints(encoded.indices.to_numpy())
    layouts = encoded.dictionary.to_pylist()
    fixed = np.array([words.reads_digits(layout) for layout in layouts], bool)[code]
    first = np.full(len(layouts), len(code))
    np.minimum.at(first, code, np.arange(len(code)))
    looked_at = fixed.copy()
    looked_at[first] = True
    made = [words.replace(raw) for raw in texts.filter(pa.array(looked_at)).to_pylist()]
    place = np.cumsum(looked_at) - 1
    row = np.where(fixed, place, place[first[code]])
    return _with_digits(pa.array(made, pa.binary()).take(pa.array(row)), texts, ~fixed)


def _with_digits(models: pa.Array, texts: pa.Array, chosen: Bools) -> pa.Array:
    """Copy the digits of `texts` to `models` in the chosen rows, which have equally many digits."""
    new = _letters(models).copy()
    old = _letters(texts)
    new[_digits(models, new, chosen)] = old[_digits(texts, old, chosen)]
    ends = models.buffers()[1]
    return pa.Array.from_buffers(
        models.type, len(models), [None, ends, pa.py_buffer(new)], 0, models.offset
    )


def _letters(texts: pa.Array) -> np.ndarray:
    """Return the data buffer of all texts, from its first byte."""
    data = texts.buffers()[2]
    return np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)


def _digits(texts: pa.Array, data: np.ndarray, chosen: Bools) -> Bools:
    """Return the mask of the bytes that are digits of the chosen texts."""
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    inside = np.zeros(len(data), bool)
    inside[ends[0] : ends[-1]] = np.repeat(chosen, np.diff(ends))
    return inside & (data >= ord("0")) & (data <= ord("9"))


# Text columns with values of the recorder's vocabulary, not of the user.
KEPT = {
    ("files", "fstype"), ("files", "kind"), ("names", "op"), ("opens", "via"), ("extents", "op"),
    ("extents", "how"), ("metadata_ops", "op"), ("marks", "kind"), ("marks", "source"),
    ("losses", "kind"), ("declared_tasks", "engine"), ("declared_io", "direction"),
    ("settings", "rule"), ("settings", "pattern"), ("settings", "hint"), ("settings", "key"),
    ("settings", "value"), ("settings", "state"),
    ("settings", "why"),
}  # fmt: skip  # a table
DROPPED = {("losses", "detail")}


def anonymize(bundle: Bundle, target: Path, key: bytes, *, force: bool = False) -> None:
    """Write the anonymised bundle. Bundles anonymised with one key have the same pseudonyms.

    User ids become 0 or 1000, free texts (notes, details) are dropped; times,
    sizes, process and inode numbers are unchanged. Raises BundleError.
    """
    words = Pseudonyms(key)
    hosts = {h.name: f"node{n}" for n, h in enumerate(bundle.manifest.hosts, 1)}
    for table in bundle.tables.values():
        for name in table.column("host").unique().to_pylist():
            hosts.setdefault(name, f"node{len(hosts) + 1}")
    with whole_bundle(target, force=force) as made:
        writer = BundleWriter(made)
        for name, table in bundle.tables.items():
            if table.num_rows:
                writer.write_table(name, _table(name, table, words, hosts))
        writer.write_manifest(_manifest(bundle.manifest, words, hosts))


def _table(name: str, table: pa.Table, words: Pseudonyms, hosts: dict[str, str]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    for index, field in enumerate(table.schema):
        column = table.column(index).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        if field.name == "host":
            new = _map_distinct(column, partial(_hosts, hosts=hosts))
        elif field.name == "uid":
            new = pc.if_else(pc.equal(column, 0), 0, 1000).cast(field.type)
        elif (name, field.name) in DROPPED:
            new = pa.nulls(len(column), field.type)
        elif (name, field.name) in KEPT:
            continue
        else:
            new = _words(column, field.name, words)
        table = table.set_column(index, field, new)
    return table


def _words(column: pa.Array, name: str, words: Pseudonyms) -> pa.Array:
    """Replace the words of a column, including values nested in lists and structures."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        return _map_distinct(column, partial(replace_words, words=words))
    if pa.types.is_list(kind):
        flat = _words(column.flatten(), name, words)
        offsets = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).cumsum()
        starts = pa.array([0, *offsets.tolist()], pa.int32())
        return pa.ListArray.from_arrays(starts, flat, mask=column.is_null()).cast(kind)
    if pa.types.is_struct(kind):
        # env: marker names are the recorder's own list and are kept
        fields = [
            column.field(i) if kind[i].name == "name" else _words(column.field(i), name, words)
            for i in range(kind.num_fields)
        ]
        return pa.StructArray.from_arrays(fields, fields=list(kind))
    return column


def _map_distinct(column: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Apply `change` once to the distinct values, which it receives and returns as binary."""
    import pyarrow as pa

    coded = column.dictionary_encode()
    new = change(coded.dictionary.cast(pa.binary())).cast(column.type)
    return new.take(coded.indices)


def _hosts(names: pa.Array, hosts: dict[str, str]) -> pa.Array:
    import pyarrow as pa

    return pa.array([hosts[name.decode()].encode() for name in names.to_pylist()], pa.binary())


def _manifest(manifest: Manifest, words: Pseudonyms, hosts: dict[str, str]) -> Manifest:
    def text(value: str) -> str:
        return os.fsdecode(words.replace(os.fsencode(value)))

    new_hosts = [
        dataclasses.replace(
            host,
            name=hosts[host.name],
            site=text(host.site),
            boot_id="",
            mounts=[
                {k: _mount_value(k, v, text) for k, v in mount.items()} for mount in host.mounts
            ],
        )
        for host in manifest.hosts
    ]
    return dataclasses.replace(
        manifest,
        hosts=new_hosts,
        command=[text(a) for a in manifest.command],
        cwd=text(manifest.cwd),
        data_roots=[text(r) for r in manifest.data_roots],
        notes=["anonymized"],
    )


def _mount_value(name: str, value: Any, text: Callable[[str], str]) -> Any:
    return text(value) if isinstance(value, str) and name != "fstype" else value
