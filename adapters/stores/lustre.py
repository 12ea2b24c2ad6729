"""Lustre: layouts of directories, and of files that `lfs setstripe` creates.

Grammar of lfs-setstripe(1) and lfs-getstripe(1); no Lustre was run. Composite layouts: small files
on the metadata server if the --map file allows it (small); in a directory of scattered files, wide
striping only after the first region, so that a small file there has one object, not one per server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracehint.adapters.stores.base import About, Acts, Gap, Setting
from tracehint.adapters.stores.commands import CommandStore, NamedValue, ObjectCommand
from tracehint.adapters.stores.grammar import HOST, Field, join_words, parse_words
from tracehint.adapters.stores.places import Places
from tracehint.adapters.stores.table import Row, express_fully, express_nearly, no
from tracehint.errors import InputError

if TYPE_CHECKING:
    from tracehint.adapters.plan import Kind

_LINE = re.compile(r"^ *(?:- )?([a-z_.]+): *(\S*) *$", re.MULTILINE)
_MAX_ANSWER = 4 << 20  # characters of a tool's output that are parsed
_PATTERN_MDT = "mdt"


def components(text: str) -> list[dict[str, str]]:
    """Parse keys and values of the layout's head and components; one entry: a plain layout."""
    found: list[dict[str, str]] = [{}]
    for key, value in _LINE.findall(text[:_MAX_ANSWER]):
        if key == "lcme_id":
            found.append({})
        found[-1].setdefault(key, value)
    return found


def layout_words(text: str) -> dict[str, str]:
    """Parse a layout to `count`, `size`, `pool`, `mirrors`, `mdt`, `narrow` as in WORDS."""
    head, *parts = components(text)
    first_mirror = parts[0].get("lcme_mirror_id") if parts else None
    mine = [part for part in parts if part.get("lcme_mirror_id") == first_mirror]
    last = mine[-1] if mine else head
    words = {
        word: last[key]
        for word, key in _KEYS.items()
        if re.fullmatch(_FORMS[word], last.get(key, ""))
    }
    mirrors = head.get("lcm_mirror_count", "1")
    if mirrors.isdecimal() and int(mirrors) > 1:
        words["mirrors"] = mirrors
    for part in mine[:-1]:
        end = part.get("lcme_extent.e_end", "")
        if part.get("lmm_pattern") == _PATTERN_MDT and end.isdecimal():
            words["mdt"] = end
        elif part.get("lmm_stripe_count") == "1" and end.isdecimal():
            words["narrow"] = end
    return words


_KEYS = {"count": "lmm_stripe_count", "size": "lmm_stripe_size", "pool": "lmm_pool"}
_FORMS = {"count": r"-1|[0-9]{1,9}", "size": r"[1-9][0-9]{0,17}", "pool": r"[A-Za-z0-9_.-]{1,15}"}


UNIT = 64 << 10  # stripe sizes and component ends are multiples of it
MAX_MIRRORS = 16
MAX_POOL = 15  # characters of a pool's name
_SIZES: dict[str, Any] = {"multiple": UNIT, "least": UNIT, "most": (4 << 30) - UNIT}
NEW: tuple[Acts, ...] = ("directory", "creation")

ABOUT = About(
    who="any user, on own files and directories (unless enable_setstripe_gid restricts it)",
    read_back="`lfs getstripe -y`",
    undo="`lfs setstripe -d DIR`, or the former layout; a file's layout stays",
    cost="one program a file or directory",
    source="the manual page lfs-setstripe(1)",
    tools=("lfs",),
)
_POOL = "one stripe in a pool that the --map file names"
ROWS: dict[str, Row] = {
    "DP=local": express_nearly(
        f"{_POOL} per node (local): only where OSTs run on the compute nodes",
        NEW,
        ("count", "1"),
        ("pool", "{local}"),
    ),
    "DP=collocation": express_fully(f"{_POOL} (groups)", NEW, ("count", "1"), ("pool", "{group}")),
    "DP=scatter": express_fully(
        "one stripe per region, round robin over all OSTs",
        NEW,
        ("size", "{strip}"),
        ("count", "-1"),
        ("narrow", "{strip}"),
        needs=("BlockSize",),
    ),
    "DP=distribute": no("files are spread over the OSTs anyway"),
    "Replication": express_nearly(
        "16 mirrors at most: writers write one, `lfs mirror resync` the rest",
        NEW,
        ("mirrors", "{copies}"),
    ),
    "ReplicationSemantics": no("mirrors are brought up to date by lfs mirror resync"),
    "BlockSize": express_fully(
        "stripe size, rounded up to 64 KiB", NEW, ("size", "{block64}"), yields_to="DP=scatter"
    ),
    "CacheSize": no("lfs ladvise is advice of a moment"),
    "Access": no("no such setting"),
    "Lifetime": no("no such setting"),
    "LastReader": no("no such setting"),
    "Metadata": express_fully(
        "an existing directory moves, with what is in it, to the MDT that the --map file names "
        "(sites); root only, unless mdt.*.enable_remote_dir_gid permits others",
        ("any",),
        ("mdt_index", "{site}"),
        targets=("directory",),
    ),
}

# count: -1 or the number of OSTs; `_Lustre.options` assembles the options
WORDS = {
    "count": NamedValue(kind="count", option=("-c", "{}")),
    "size": NamedValue(kind="size", option=("-S", "{}")),
    "pool": NamedValue(kind="name", option=("-p", "{}")),
    "mirrors": NamedValue(kind="count", option=("-N{}",)),
    "narrow": NamedValue(kind="size", option=()),  # end of the first, narrow component
    "mdt": NamedValue(kind="size", option=()),
}
LAYOUT = ObjectCommand(
    words=WORDS,
    set=("lfs", "setstripe", "{options}", "{path}"),
    get=("lfs", "getstripe", "-y", "-d", "{path}"),
    unset=("lfs", "setstripe", "-d", "{path}"),
    creates=True,
)
MOVE = ObjectCommand(
    words={"mdt_index": NamedValue(kind="count", option=("-m", "{}"), read=r"^(\d+)$")},
    set=("lfs", "migrate", "{options}", "{path}"),
    get=("lfs", "getdirstripe", "-m", "{path}"),
)
FIELDS = {
    "block64": Field(of="block", **_SIZES),
    "strip": Field(of="region", **_SIZES),
    "copies": Field(of="value", least=1, most=MAX_MIRRORS),
}


@dataclass(frozen=True, kw_only=True)
class _Lustre(CommandStore):
    """The Lustre adapter; `places` names pools and the largest file on the metadata server."""

    def translate(self, hints: Mapping[str, str], kind: Kind) -> tuple[list[Setting], list[Gap]]:
        """Return the settings; a layout has components only for a directory without mirrors."""
        settings, gaps = super().translate(hints, kind)
        for place, setting in enumerate(settings):
            if self._command(setting.key) is not LAYOUT:
                continue
            words = parse_words(setting.value, LAYOUT.kinds())
            if kind == "file" or "mirrors" in words:
                words.pop("narrow", None)
            elif self.places.small:
                words["mdt"] = str(self.places.small)
            settings[place] = replace(setting, value=join_words(words))
        return settings, gaps

    def options(self, command: ObjectCommand, words: Mapping[str, str]) -> list[str]:
        """Return the options of a plain layout, or of components to the end of the file (-1)."""
        if command is not LAYOUT:
            return super().options(command, words)
        if len(words.get("pool", "").replace(HOST, "")) > MAX_POOL:
            raise InputError(
                f"the pool {words['pool'][:40]!r} has more than {MAX_POOL} characters",
                "Lustre accepts no longer names: check the --map file.",
            )
        rest = {name: words[name] for name in ("size", "pool") if name in words}
        plain = super().options(command, {**rest, **_select_word(words, "count")})
        mirrors = super().options(command, _select_word(words, "mirrors"))
        if "mdt" not in words and "narrow" not in words:
            return [*mirrors, *plain]
        parts: list[str] = []
        start = int(words.get("mdt", "0"))
        if start:
            parts += ["-E", str(start), "-L", "mdt"]
        end = int(words.get("narrow", "0"))
        if start < end:
            one = super().options(command, {**rest, "count": "1"})
            parts += ["-E", str(end), *one]
        return [*mirrors, *parts, "-E", "-1", *plain]

    def words_in(self, command: ObjectCommand, answer: str) -> dict[str, str]:
        """Parse the words of a layout as `lfs getstripe -y` prints it."""
        return layout_words(answer) if command is LAYOUT else super().words_in(command, answer)


def _select_word(words: Mapping[str, str], name: str) -> dict[str, str]:
    return {name: words[name]} if name in words else {}


def lustre(places: Places) -> CommandStore:
    """Return the Lustre store of a site."""
    return _Lustre(
        name="lustre",
        title="Lustre (lfs setstripe)",
        about=ABOUT,
        rows=ROWS,
        fields=FIELDS,
        commands={"layout": LAYOUT, "metadata": MOVE},
        places=places,
    )
