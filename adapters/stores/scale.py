"""IBM Storage Scale: a placement policy for `mmchpolicy`. Not run; grammar of IBM's documentation.

At creation a policy rule matches the last component of a path only. So a rule of the hint file
becomes `NAME LIKE` on that component, with `%` for its placeholders. The first matching rule wins,
and a policy without a DEFAULT rule makes every other creation fail: this one always ends with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehint.adapters.stores.base import About, Acts, Gap
from tracehint.adapters.stores.document_stores import CheckedTarget, DocumentStore
from tracehint.adapters.stores.grammar import Field
from tracehint.adapters.stores.places import Places
from tracehint.adapters.stores.table import express_nearly, no
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.template import parse

if TYPE_CHECKING:
    from tracehint.hintgen.hints.model import HintFile

MAX_BYTES = 1 << 20  # of a policy file
NEW: tuple[Acts, ...] = ("creation",)
_NAME = r"[A-Za-z0-9_.+=~-]"
# form of each line of a policy; other lines are rejected
_RULE = re.compile(
    r"RULE 'th[0-9]{1,6}' SET POOL '[A-Za-z0-9_.-]{1,255}'( REPLICATE\([123]\))?"
    rf" WHERE NAME LIKE '({_NAME}|%|\\_)+' ESCAPE '\\'|/\*[A-Za-z0-9 ,.:()_-]*\*/"
)
_DEFAULT = re.compile(r"RULE 'default' SET POOL '[A-Za-z0-9_.-]{1,255}'")

ABOUT = About(
    who="the administrator (`mmchpolicy DEVICE FILE`)",
    read_back="`mmlspolicy DEVICE -L`; a file's: `mmlsattr -L FILE`",
    undo="the former policy file",
    cost="one policy for the whole file system",
    source="IBM's documentation of policy rules (mmchpolicy DEVICE FILE -I test checks it)",
    tools=("mmchpolicy",),
)
ROWS = {
    "DP=local": no("FPO's write affinity belongs to the pool"),
    "DP=collocation": express_nearly(
        "a pool that the --map file names (groups)", NEW, ("pool", "{group}")
    ),
    "DP=distribute": no("blocks are spread over the pool anyway"),
    "DP=scatter": no("the block size belongs to the pool"),
    "Replication": express_nearly(
        "at most 3 copies, and the file system's own maximum", NEW, ("copies", "{copies}")
    ),
    "BlockSize": no("the block size belongs to the pool"),
}


@dataclass(frozen=True, kw_only=True)
class ScalePolicy(DocumentStore):
    """The Storage Scale adapter; `places.pool`: the pool of all other files."""

    def render(
        self, checked: Sequence[CheckedTarget], hints: HintFile, gaps: list[Gap]
    ) -> tuple[str, int]:
        """Render one rule per name pattern, most specific first, then the default."""
        default = self.places.pool
        if not default:
            raise UsageError(
                "a policy without a DEFAULT rule makes every other creation fail",
                'Name the pool of all other files in a --map file: pool = "system".',
            )
        templates = {rule.id: rule.template for rule in hints.rules}
        rules: dict[str, str] = {}  # name pattern -> its SET clause
        files = [one for one in checked if one.target.kind == "file"]
        for one in files:
            pattern = _pattern(templates.get(one.target.rule, ""), one.path)
            rules.setdefault(pattern, _words(one, default))
        order = sorted(rules, key=lambda name: (name.count("%"), -len(name), name))
        first = [(re.compile(_regex(name)), rules[name]) for name in order]
        for one in files:
            name = one.path.rpartition("/")[2]
            found = next((words for regex, words in first if regex.fullmatch(name)), None)
            if found is not None and found != _words(one, default):
                reason = (
                    "a file of the same name elsewhere has other hints, and a policy sees no path"
                )
                gaps.append(Gap(hint=one.target.pattern, level="none", reason=reason))
        lines = [f"/* {line} */" for line in self.head()]
        lines += [
            f"RULE 'th{i}' SET {rules[name]} WHERE NAME LIKE '{name}' ESCAPE '\\'"
            for i, name in enumerate(order, 1)
        ]
        text = "\n".join([*lines, f"RULE 'default' SET POOL '{default}'", ""])
        return check_policy(text), len(order)


def _words(one: CheckedTarget, default: str) -> str:
    copies = f" REPLICATE({one.words['copies']})" if "copies" in one.words else ""
    return f"POOL '{one.words.get('pool', default)}'{copies}"


def _pattern(template: str, path: str) -> str:
    """Return the last component of the template, or else of the path, as a LIKE pattern."""
    name = path.rpartition("/")[2].encode()
    parts = parse(template).parts if template else (name,)
    text = "".join("%" if isinstance(p, str) else p.decode("latin-1") for p in parts)
    last = text.rpartition("/")[2].replace("_", "\\_")
    if not re.fullmatch(rf"({_NAME}|%|\\_)+", last) or not last.strip("%"):
        return name.decode().replace("_", "\\_")
    return re.sub("%+", "%", last)


def _regex(pattern: str) -> str:
    return re.escape(pattern.replace("\\_", "_")).replace("%", ".*")


def check_policy(text: str) -> str:
    """Return `text` if it is a policy of the form above; raises InputError otherwise."""
    *rules, last, end = ["", *text.split("\n")]
    if end or not _DEFAULT.fullmatch(last) or len(text) > MAX_BYTES:
        raise InputError("the policy does not end with its DEFAULT rule", "Use fewer rules.")
    for line in rules[1:]:
        if not _RULE.fullmatch(line):
            raise InputError(f"{line[:80]!r} is not a rule of a policy", "Check the --map file.")
    return text


def storage_scale(places: Places) -> ScalePolicy:
    """Return the Storage Scale store of a site."""
    return ScalePolicy(
        name="storage-scale",
        title="IBM Storage Scale (placement policy)",
        about=ABOUT,
        rows=ROWS,
        fields={"copies": Field(of="value", least=1, most=3)},
        places=places,
        targets=("file",),
        kinds={"pool": "name", "copies": "count"},
    )
