"""Swift/K: a policy file for Collective Data Management (`swift -cdm.file F`).

A rule of the file is `rule REGEX POLICY ARGUMENTS`; the first that matches wins. Templates become
Java regular expressions of plain ASCII without blanks, so no name from a trace can begin a line, a
field or a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tracehint.adapters.stores.base import Gap
from tracehint.errors import UsageError
from tracehint.hintgen.hints.holes import HOLES
from tracehint.hintgen.hints.model import HintFile, Rule
from tracehint.hintgen.hints.template import Template, parse
from tracehint.hintgen.text.escape import comment
from tracehint.version import __version__

# pattern -> (policy, which directory it names, why)
POLICIES: dict[str, tuple[str, str, str]] = {
    "broadcast": ("BROADCAST", "local", "one copy on every node"),
    "pipeline": ("DIRECT", "shared", "no staging: written and read in place"),
    "stage_in": ("LOCAL cp", "shared", "copied to the one node that reads it"),
    "gather": ("GATHER", "", "outputs are collected before they leave the node"),
    "reduce": ("GATHER", "", "outputs are collected before they leave the node"),
}
GATHER_LIMIT = 500_000_000  # bytes; the value of the manual's example


def policy_file(hints: HintFile, *, local: str, shared: str) -> tuple[str, list[Gap]]:
    """The policy file's text, and what it cannot say.

    shared: where all nodes see the data; empty: not known, and what needs it is not said.
    """
    for place in filter(None, (local, shared)):
        if not re.fullmatch(r"/[A-Za-z0-9_./+-]*", place):
            raise UsageError(
                f"the directory {place[:80]!r} cannot stand in a policy file",
                "Give --local-dir and --shared-dir: absolute, without blanks or quotes.",
            )
    lines: list[str] = []
    gaps: list[Gap] = []
    gathers = False
    for rule in sorted(hints.rules, key=lambda r: parse(r.template).specificity, reverse=True):
        said, problem = _line(rule, local, shared)
        title = f"{rule.id} {rule.pattern}: {rule.template}"
        lines.append(f"# {comment(title)}")
        if said is None:
            lines.append(f"# not said: {comment(problem)}")
            gaps.append(Gap(hint=rule.pattern, level="none", reason=problem))
        else:
            lines.append(said)
            gathers |= said.endswith(" GATHER")
    head = [f"# tracehint {__version__}: data policies for Swift/K, swift -cdm.file THIS-FILE"]
    if gathers:
        head += [
            f"property GATHER_LIMIT {GATHER_LIMIT}",
            f"property GATHER_DIR {local}",
            f"property GATHER_TARGET {shared}",
        ]
    return "\n".join([*head, *lines, "rule .* DEFAULT"]) + "\n", gaps


def _line(rule: Rule, local: str, shared: str) -> tuple[str | None, str]:
    """The rule's line, or why there is none."""
    if rule.pattern not in POLICIES:
        return None, "Swift/K has no policy for this pattern"
    policy, place, _ = POLICIES[rule.pattern]
    if not shared and (place == "shared" or policy == "GATHER"):
        return None, "no directory that all nodes see: give --shared-dir"
    if policy == "GATHER" and rule.consumers:
        return None, "GATHER packs files into archives, and tasks of this run read them again"
    if rule.conditions.get("needs"):
        return None, "the path alone does not tell which files are meant"
    pattern = java_regex(parse(rule.template), [parse(text) for text in rule.exclude])
    if pattern is None:
        return None, "a name that is not UTF-8 cannot stand in a Java regular expression"
    where = {"local": f" {local}", "shared": f" {shared}", "": ""}[place]
    return f"rule {pattern} {policy}{where}", ""


def java_regex(template: Template, exclude: Iterable[Template] = ()) -> str | None:
    """Anchored regex for a path that may have directories before it; None: not UTF-8."""
    body = _body(template)
    others = [_body(other) for other in exclude]
    if body is None or None in others:
        return None
    ahead = f"(?!(?:.*/)?(?:{'|'.join(filter(None, others))})$)" if others else ""
    return f"^{ahead}(?:.*/)?{body}$"


def _body(template: Template) -> str | None:
    out = []
    for part in template.parts:
        if isinstance(part, str):
            out.append(f"(?:{HOLES[part].regex})")
            continue
        try:
            text = part.decode("utf-8")
        except UnicodeDecodeError:
            return None
        out.append("".join(map(_java_char, text)))
    return "".join(out)


def _java_char(char: str) -> str:
    """One character of a Java regex: letters, digits, `_`, `-`, `/` as they are, others by code."""
    if char.isascii() and (char.isalnum() or char in "_-/"):
        return char
    if char == ".":
        return r"\."
    raw = char.encode("utf-16-be")
    return "".join(f"\\u{raw[i]:02x}{raw[i + 1]:02x}" for i in range(0, len(raw), 2))
