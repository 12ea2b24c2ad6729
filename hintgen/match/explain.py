"""Explain which rule matches a path and why, and summarise a hint file as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from msgspec import to_builtins

from tracehint.hintgen.gain import Baseline, Gain
from tracehint.hintgen.hints.model import HintFile, Refusal, Rule
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.match.match import Declared, match
from tracehint.hintgen.text.escape import shorten, terminal
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

REASONS: dict[str, str] = {
    "fired": "this rule fires",
    "no_rule": "no rule's template fits this name",
    "held_back": "a rule for this name was learned and held back",
    "excluded": "its template fits, but so does one of its exclusions",
    "types": "its template fits, but the declared tasks are not those it was learned from",
    "needs_graph": "its template fits, but the name alone does not show the pattern: it needs the "
    "engine's graph (tasks that write and read the file)",
    "maker": "its template fits, but the name alone does not show the pattern: it needs the "
    "engine's graph, or to be asked while the file is made (`tracehint run`)",
    "use": "its template fits, but it has no hints for files used in that way",
    "small": "its template fits, but the file is too small to repay a call; all that it was "
    "learned from were larger",
    "extra": "its template fits, but the same two tasks share more files than in the runs it was "
    "learned from: none can be preferred",
    "names": "its template fits, but the sibling names that it requires are not known to be there",
    "costly": "too many rules and placeholders may fit this name: looking went beyond the limit "
    "match-work (TRACEHINT_LIMITS=match-work=N raises it)",
    "conflict": "two rules fit equally well and disagree: no hint",
    "tie": "fits as well as another rule and disagrees with it",
    "less_specific": "fits too, but a more specific rule goes first",
}


def explain(
    hints: HintFile,
    path: bytes,
    producer: str | None = None,
    consumers: Sequence[str] = (),
    nodes: int | None = None,
) -> dict[str, Any]:
    """Return the JSON of `hints --explain PATH`; task types are optional."""
    known = Declared()
    if producer is not None or consumers:
        known = Declared(
            producer_types=[producer],
            consumer_types=[list(consumers)],
            producers=[[producer] if producer else []],
            consumers=[[f"{name}#{n}" for n, name in enumerate(consumers)]],
        )
    found = match(hints, [path], known=known, nodes=nodes)[0]
    rules = {rule.id: rule for rule in hints.rules}
    refused = [refusal for refusal in hints.refused if _fits(refusal.template, path)]
    reason = "held_back" if found.reason == "no_rule" and refused else found.reason
    return {
        "schema": "tracehint.explain/1",
        "path": to_text(path),
        "reason": reason,
        "text": REASONS[reason],
        "rule": _rule_json(found.rule) if found.rule else None,
        "baseline": None if hints.baseline is None else vars(hints.baseline),
        "pattern": found.pattern,
        "hints": [
            {"name": h.name, "value": h.value, "when": h.when, "level": h.level}
            for h in found.hints
        ],
        "others": [_other_json(rules[name], why) for name, why in found.candidates],
        "refused": [
            {"template": r.template, "pattern": r.pattern, "reason": r.reason, "text": r.text}
            for r in refused
        ],
    }


def _other_json(rule: Rule, why: str) -> dict[str, Any]:
    text = REASONS[why]
    if why == "maker":
        text += f"; made by a task of type {' or '.join(map(terminal, rule.made_by))}"
    return {"rule": rule.id, "template": rule.template, "reason": why, "text": text}


def _fits(template: str, path: bytes) -> bool:
    from tracehint.errors import InputError
    from tracehint.hintgen.hints.template import parse

    try:
        return parse(template).match(path) is not None
    except InputError:  # a refused template may be too loose to parse
        return False


def _rule_json(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "template": rule.template,
        "producers": list(rule.producers),
        "consumers": list(rule.consumers),
        "confidence": rule.confidence,
        "evidence": rule.evidence,
        "gain": None if rule.gain is None else asdict(rule.gain),
        "conditions": to_builtins(rule.conditions),
        "exclude": list(rule.exclude),
        "formulas": {h.name: to_builtins(h.formula) for h in rule.hints if h.formula.fn},
        "examples": list(rule.examples),
    }


def explain_text(data: dict[str, Any]) -> str:
    """Format the result of `explain` as text."""
    lines = [f"{data['path']}: {data['text']}"]
    rule = data["rule"]
    if rule:
        lines.append(f"  rule {rule['id']}  {rule['template']}  ({data['pattern']})")
        lines += [
            f"    {h['name']}={h['value']}  set {_format_condition(h)}" for h in data["hints"]
        ]
        lines.append(
            f"    written by {', '.join(filter(None, rule['producers'])) or 'no task (input)'}; "
            f"read by {', '.join(rule['consumers']) or 'no task'}"
        )
        seen = rule["evidence"]
        lines.append(
            f"    learned from {plural(seen['files'], 'file')}, {size(seen['bytes'])}; "
            f"confidence {rule['confidence']:.2f}"
        )
        if rule["gain"] is not None and data["baseline"] is not None:
            base = Baseline(**data["baseline"])
            lines.append(f"    gain: {Gain(**rule['gain']).text(base)} ({_simulation_text(base)})")
        lines += [f"    {name} follows {_formula(f)}" for name, f in rule["formulas"].items()]
    alike: dict[tuple[str, str], list[str]] = {}
    for other in data["others"]:
        alike.setdefault((other["template"], other["text"]), []).append(other["rule"])
    lines += [
        f"  rule {', '.join(names)}  {template}: {text}"
        for (template, text), names in alike.items()
    ]
    lines += [
        f"  refused: {other['template']} ({other['pattern']}): {other['text']}"
        for other in data["refused"]
    ]
    return "\n".join(lines) + "\n"


def _simulation_text(base: Baseline) -> str:
    return f"simulated: {terminal(base.cluster)}, {plural(base.nodes, 'node')}"


def _format_condition(hint: dict[str, Any]) -> str:
    words = {
        "create": "before the first byte",
        "staging": "when the file is staged in",
        "before_read": "before the readers start",
        "any": "at any time",
    }
    return words[hint["when"]] + (" (advisory)" if hint["level"] == "advisory" else "")


def _formula(formula: dict[str, Any]) -> str:
    if formula["fn"] == "replicas":
        return f"the readers: one copy per {formula['per']:g}, at least 2, at most the nodes"
    if formula["fn"] == "group":
        text = f"the {formula.get('by', 'consumer')} task, else placeholders of the name"
        return text + (" without their digits" if formula.get("letters") else "")
    return f"the size: a reader's share, in steps of {formula['step']} bytes"


def summary_text(hints: HintFile, limit: int = 40) -> str:
    """Format the rules of a hint file as a text table; fallback rules are only counted."""
    seen = [rule for rule in hints.rules if rule.evidence.get("level", 0) == 0]
    base = hints.baseline
    head: tuple[str, ...] = ("pattern", "files", "seen", "confidence", "hints", "saves")
    rows = [head, *(_row(rule, base) for rule in seen[:limit])]
    width = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:5]]
    lines = [
        f"{pattern:<{width[0]}}  {name:<{width[1]}}  {files:>{width[2]}}  {confidence:>{width[3]}}"
        f"  {values:<{width[4]}}  {saved}".rstrip()
        for pattern, name, files, confidence, values, saved in (rows if seen else [])
    ]
    if len(seen) > limit:
        lines.append(f"... and {len(seen) - limit:,} more")
    more = plural(len(hints.rules) - len(seen), "more general one")
    lines.append(f"{plural(len(seen), 'rule')} for the names of this run, {more} for other names")
    if base is not None and hints.all is not None:
        lines.append(f"All of them together: {hints.all.text(base)} ({_simulation_text(base)})")
    alike: dict[str, list[Refusal]] = {}
    for refusal in hints.refused:
        alike.setdefault(refusal.reason, []).append(refusal)
    for refused in alike.values():
        names = ", ".join(shorten(terminal(r.template), 40) for r in refused[:4])
        others = f" and {len(refused) - 4:,} more" if len(refused) > 4 else ""
        lines.append(f"No hint for {names}{others}:")
        lines.append(("  the first: " if others else "  ") + terminal(refused[0].text))
    return "\n".join(lines) + "\n"


def _row(rule: Rule, base: Baseline | None) -> tuple[str, ...]:
    values = " ".join(f"{h.name}={h.value}" for h in rule.hints if h.level == "placement")
    need = {"use": "  [needs the readers]", "types": "  [needs the task types]"}
    made_by = f"  [made by {' or '.join(rule.made_by)}]" if rule.made_by else ""
    return (
        rule.pattern.replace("_", " "),
        shorten(terminal(rule.template), 60),
        f"{plural(rule.evidence['files'], 'file')}, {size(rule.evidence['bytes'])}",
        f"{rule.confidence:.2f}",
        terminal(values + (made_by or need.get(rule.conditions.needs, ""))),
        "-" if rule.gain is None or base is None else rule.gain.text(base),
    )
