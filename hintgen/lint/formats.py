"""Findings as text, JSON, SARIF, GitHub annotations and JUnit; `render` chooses by name."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracehint.hintgen.gain import NO_CHANGE, Baseline
from tracehint.hintgen.lint.finding import Finding, by_rule, freed_storage, sum_findings
from tracehint.hintgen.summary.gain import Simulation
from tracehint.hintgen.summary.summary import print_requested
from tracehint.hintgen.summary.tallies import stages
from tracehint.hintgen.text.escape import github, github_property, shorten, terminal, text, uri, xml
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from rich.console import Console

    from tracehint.hintgen.lint.finding import Savings


@dataclass(frozen=True)
class Info:
    """What a renderer prints in addition to the findings."""

    tool: str  # "tracehint 0.1.0"
    subject: str  # the bundle, or "A -> B" of a diff
    workflow: str = ""  # the workflow file, if one was given
    rules: dict[str, str] = field(default_factory=dict)  # code -> name of all rules that ran
    skipped: dict[str, str] = field(default_factory=dict)  # code -> missing fact
    troubles: Sequence[str] = ()  # problems of the run, printed before the findings
    suppressed: int = 0  # findings that the baseline hides
    simulation: Simulation | None = None  # source of the gains; None: findings have none
    noun: str = "finding"  # the unit that the text counts
    hint: str = "Run `tracehint explain CODE` for what a finding means."
    every: bool = False  # show all findings in the text, not the largest of each rule
    width: int = 80
    color: bool = False

    @property
    def baseline(self) -> Baseline | None:
        """The simulated run without changes, if there is one."""
        simulation = self.simulation
        return simulation.baseline if simulation and not simulation.reason else None


# Findings for a terminal, wrapped to its width: a heading per rule, then its largest finding.

MAX_SHOWN = 2  # maximum findings of a rule that are all shown; of more, only the largest
MAX_NAMES, MAX_LENGTH = 3, 40  # files named among those not shown; characters of a name
_STYLE = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def savings_text(finding: Finding, baseline: Baseline | None) -> str:
    """Return `saves ...` for the fix; empty if nothing is known."""
    gain = finding.gain
    parts = _list_counted(finding.saves)
    if gain is not None and baseline is not None and (gain.pays(baseline) or not parts):
        text = gain.text(baseline)
        if text == NO_CHANGE:
            return text
        parts.insert(0, text)
    return f"saves {', '.join(parts)}" if parts else ""


def _list_counted(saves: Savings) -> list[str]:
    """Return the savings counted in the run, without simulated gains."""
    parts = []
    if saves.storage_bytes:
        parts.append(f"{size(saves.storage_bytes)} storage")
    if saves.gb_hours >= 0.01:
        parts.append(f"{saves.gb_hours:,.2f} GB-hours")
    if saves.operations:
        parts.append(plural(saves.operations, "call"))
    return parts


def render_text(findings: Sequence[Finding], info: Info) -> str:
    """Render the findings by rule: heading, message, files, assumptions and fix; then a total, and
    the resources that tasks requested."""
    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(
        file=out,
        width=max(40, info.width),
        color_system="standard" if info.color else None,
        force_terminal=info.color,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
        no_color=not info.color,
    )
    for trouble in info.troubles:
        console.print(Text(terminal(trouble), "bold red"))
    printed: dict[str, str] = {}
    for own in by_rule(findings):
        _print_rule(
            console,
            own,
            printed,
            len(own) if info.every or len(own) <= MAX_SHOWN else 1,
            info.baseline,
        )
    _print_total(console, findings, info)
    if info.simulation is not None and info.simulation.analysis.run.get("requested"):
        print_requested(stages(info.simulation.analysis), console)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip("\n")


def _print_rule(
    console: Console,
    own: list[Finding],
    printed: dict[str, str],
    shown: int,
    baseline: Baseline | None,
) -> None:
    """Print a heading with the savings of the rule, and its first `shown` findings."""
    from rich.text import Text

    first = own[0]
    head = Text(f"{first.code} {first.name}", _STYLE[first.severity])
    if len(own) > 1:
        head.append(f"  {plural(len(own), 'finding')}")
        if counts := _list_counted(sum_findings(own)):
            head.append(f", save {', '.join(counts)}", "bold")
    elif saved := savings_text(first, baseline):
        head.append(f"  {saved}", "bold")
    console.print(head)
    for at, finding in enumerate(own[:shown]):
        if at:
            console.print()
        _print_finding(
            console, finding, printed, "" if len(own) == 1 else savings_text(finding, baseline)
        )
    if left := own[shown:]:
        _print_indented(console, terminal(_format_hidden(left)), "dim")
    console.print()


def _format_hidden(left: Sequence[Finding]) -> str:
    """Return the number of findings not shown, their savings, and some of their files."""
    saved = ", ".join(_list_counted(sum_findings(left)))
    names = [shorten(terminal(f.template), MAX_LENGTH) for f in left if f.template][:MAX_NAMES]
    text = f"and {len(left)} more" + (f", {saved}" if saved else "") + " (--all)"
    return text + (f": {', '.join(names)}" + ", ..." * (len(left) > len(names)) if names else "")


def _print_finding(
    console: Console, finding: Finding, printed_before: dict[str, str], saved: str
) -> None:
    """Print a finding; `printed_before` maps each printed fix to the rule that it was printed for;
    `saved`: the finding's saving, unless the heading has it."""
    lines = [(finding.message, "")]
    if finding.template:
        lines.append((_files_text(finding, console.width - 4), ""))
    if saved:
        lines.append((saved, "bold"))
    if finding.confidence < 1:
        lines.append((f"confidence {finding.confidence:.2f}", "dim"))
    if finding.assumed:
        lines.append(("assumed: " + "; ".join(finding.assumed), "dim"))
    known = printed_before.get(finding.fix)
    printed_before.setdefault(finding.fix, finding.code)
    copied = finding.fix.startswith("tracehint ") or "\n" in finding.fix
    if known or not copied:
        lines.append(("fix: " + (f"as above ({known})" if known else finding.fix), "green"))
    for line, style in lines:
        _print_indented(console, terminal(line), style)
    if copied and not known:
        _print_copied(console, finding.fix)


def _print_indented(console: Console, line: str, style: str) -> None:
    if console.no_color and line.isascii() and len(line) <= console.width - 2:
        console.file.write(f"  {line}\n")  # fast path for hundreds of lines without colour
        return
    from rich.padding import Padding
    from rich.text import Text

    console.print(Padding(Text(line, style, overflow="fold"), (0, 0, 0, 2)))


def _print_copied(console: Console, text: str) -> None:
    """Print lines to copy without wrapping: one after `fix:`, several below it."""
    from rich.text import Text

    first, *rest = [terminal(line) for line in text.splitlines()]
    lines = [f"  fix: {first}"] if not rest else ["  fix:", *(f"    {x}" for x in [first, *rest])]
    for line in lines:
        console.print(Text(line, "green"), soft_wrap=True)


def _files_text(finding: Finding, width: int) -> str:
    flow = " -> ".join(t for t in (finding.producers, finding.consumers) if t)
    name = shorten(terminal(finding.template), max(24, width - 2))
    flow = shorten(terminal(flow), max(24, width - 10))
    return f"{name}  [{flow}]" if flow else name


def _total_lines(findings: Sequence[Finding], info: Info) -> list[str]:
    parts = [plural(len(findings), info.noun)]
    if freed := freed_storage(findings):
        parts.append(f"reclaimable storage: {size(freed)}")
    return parts


def _print_total(console: Console, findings: Sequence[Finding], info: Info) -> None:
    from rich.text import Text

    if findings:
        console.print(Text("; ".join(_total_lines(findings, info)), "bold"))
        for line in info.simulation.lines() if info.simulation is not None else ():
            console.print(Text(line))
        if info.hint:
            console.print(Text(info.hint, "dim"))
    else:
        console.print(Text(f"No {info.noun}s.", "bold green"))
    if info.suppressed:
        console.print(Text(f"{plural(info.suppressed, 'finding')} hidden by the baseline."))
    reasons = sorted(set(info.skipped.values()))
    for reason in reasons:
        codes = [c for c, r in info.skipped.items() if r == reason]
        why = {
            "declared": "no declared graph (give the workflow file: lint BUNDLE WORKFLOW)",
            "hosts": "the run used one host",
            "bundle": "the input is an analysis, not a bundle",
        }[reason]
        console.print(Text(f"Not checked, {why}: {' '.join(codes)}", "dim"))


# Findings as JSON: `{"schema": "tracehint.findings/1", "findings": [...]}`.


def render_json(findings: Sequence[Finding], info: Info) -> str:
    """Render one JSON document."""
    document: dict[str, Any] = {
        "schema": "tracehint.findings/1",
        "tool": info.tool,
        "subject": text(info.subject),
        "findings": [f.as_dict() for f in findings],
        "rules_without_facts": info.skipped,
        "suppressed": info.suppressed,
    }
    if info.simulation is not None:
        document |= info.simulation.as_json()
    return json.dumps(document, indent=1, default=str)


# Findings as SARIF 2.1.0, the format of code-scanning services.

_SARIF_LEVEL = {"error": "error", "warning": "warning", "info": "note"}
_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def render_sarif(findings: Sequence[Finding], info: Info) -> str:
    """Render a SARIF log with one run. Locations are files of the run, not lines of code."""
    rules = dict(info.rules) or {f.code: f.name for f in findings}
    for finding in findings:
        rules.setdefault(finding.code, finding.name)
    order = {code: index for index, code in enumerate(rules)}
    name, _, version = info.tool.partition(" ")
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": name,
                "version": version,
                "semanticVersion": version,
                "rules": [_sarif_rule(code, rule) for code, rule in rules.items()],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            "DATAROOT": {"description": {"text": "The data root of the traced run"}}
        },
        "results": [_sarif_result(f, order[f.code], info) for f in findings],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _sarif_rule(code: str, name: str) -> dict[str, Any]:
    described = {"id": code, "name": "".join(part.capitalize() for part in name.split("-"))}
    return {**described, "shortDescription": {"text": name.replace("-", " ")}}


def _sarif_result(finding: Finding, index: int, info: Info) -> dict[str, Any]:
    message = f"{finding.message} ({finding.template})" if finding.template else finding.message
    locations = [_sarif_location(path) for path in finding.examples]
    if info.workflow:
        locations.insert(0, {"physicalLocation": {"artifactLocation": {"uri": uri(info.workflow)}}})
    saves = finding.saves
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _SARIF_LEVEL[finding.severity],
        "message": {"text": text(message)},
        "locations": locations,
        "partialFingerprints": {"tracehint/v1": finding.fingerprint},
        "rank": round(finding.confidence * 100, 1),
        "properties": {
            "files": finding.files,
            "bytes": finding.bytes,
            "gain": vars(finding.gain) if finding.gain else None,
            "savesStorageBytes": saves.storage_bytes,
            "savesGbHours": saves.gb_hours,
            "savesCalls": saves.operations,
            "assumed": [text(a) for a in finding.assumed],
            "fix": text(finding.fix),
        },
    }


def _sarif_location(path: bytes) -> dict[str, Any]:
    if path.startswith(b"/"):
        place = {"uri": "file://" + uri(path)}
    else:
        # A first segment with a colon would be parsed as a scheme; uri() quotes the colon.
        place = {"uri": uri(path), "uriBaseId": "DATAROOT"}
    return {"physicalLocation": {"artifactLocation": place}}


# Findings as GitHub workflow commands: annotations on the workflow file.

_GITHUB_LEVEL = {"error": "error", "warning": "warning", "info": "notice"}


def render_github(findings: Sequence[Finding], info: Info) -> str:
    """Render one `::warning ...::message` line per finding."""
    return "\n".join(_github_line(f, info) for f in findings)


def _github_line(finding: Finding, info: Info) -> str:
    properties = [f"title={github_property(f'{finding.code} {finding.name}')}"]
    if info.workflow:
        properties.insert(0, f"file={github_property(info.workflow)}")
    parts = [finding.template, finding.message, savings_text(finding, info.baseline), finding.fix]
    message = github(" | ".join(p for p in parts if p))
    return f"::{_GITHUB_LEVEL[finding.severity]} {','.join(properties)}::{message}"


# Findings as JUnit XML: one test case per rule, failed if the rule has findings.


def render_junit(findings: Sequence[Finding], info: Info) -> str:
    """Render a `testsuites` document; rules that lack facts count as skipped."""
    by_code: dict[str, list[Finding]] = {code: [] for code in info.rules}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    failed = sum(bool(found) for found in by_code.values())
    counts = f'tests="{len(by_code)}" failures="{failed}" skipped="{len(info.skipped)}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites {counts} errors="0">',
        f'<testsuite name="{xml(info.subject)}" {counts} errors="0">',
    ]
    for code, found in by_code.items():
        name = info.rules.get(code) or (found[0].name if found else code)
        lines.append(f'<testcase classname="{xml(info.tool)}" name="{xml(f"{code} {name}")}">')
        if code in info.skipped:
            lines.append(f'<skipped message="{xml("needs " + info.skipped[code])}"/>')
        lines += [_junit_failure(f, info) for f in found]
        lines.append("</testcase>")
    return "\n".join([*lines, "</testsuite>", "</testsuites>"])


def _junit_failure(finding: Finding, info: Info) -> str:
    body = [finding.template, savings_text(finding, info.baseline), finding.fix]
    inner = "\n".join(xml(part) for part in body if part)
    return (
        f'<failure type="{xml(finding.severity)}" message="{xml(finding.message)}">'
        f"{inner}</failure>"
    )


_RENDERERS = {
    "text": render_text,
    "json": render_json,
    "sarif": render_sarif,
    "github": render_github,
    "junit": render_junit,
}
FORMATS = tuple(_RENDERERS)


def render(name: str, findings: Sequence[Finding], info: Info) -> str:
    """Render the findings in the format `name`, one of FORMATS."""
    if name not in _RENDERERS:
        raise ValueError(name)
    return _RENDERERS[name](findings, info)
