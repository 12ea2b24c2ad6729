"""Invariants of the gains of every run (docs/explanation/gain.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tracehint.analyzer.model import Analysis
from tracehint.hintgen.hints.hintfile import dump, load
from tracehint.hintgen.learn.rules import learn
from tracehint.hintgen.lint import run_rules
from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding
from tracehint.hintgen.lint.formats import Info, render
from tracehint.hintgen.match.explain import explain
from tracehint.hintgen.report.data import collect
from tracehint.hintgen.summary.gain import Simulation, Where
from tracehint.hintgen.summary.rule_gains import with_gains
from tracehint.schemas.store import Bundle

CHANCE = 0.05  # of the baseline: maximum difference between two remedies with the same effect
KEYS = {"makespan_s", "makespan_low_s", "makespan_high_s", "network_bytes", "significant"}


def check_gains(document: dict[str, Any]) -> int:
    """Assert the invariants of a document with `baseline`, `all` and `findings`; return the number
    of findings with a gain."""
    base, every = document["baseline"], document["all"]
    if base is None:
        assert every is None and document["no_gain_because"]
        assert all(f["gain"] is None for f in document["findings"])
        return 0
    assert set(base) == {"cluster", "nodes", "makespan_s", "network_bytes"}
    own = [f["gain"] for f in document["findings"] if f["gain"] is not None]
    for gain in (every, *own):
        assert set(gain) == KEYS
        assert 0 <= gain["network_bytes"] <= base["network_bytes"]
        assert gain["makespan_low_s"] <= gain["makespan_s"] <= gain["makespan_high_s"]
        assert gain["makespan_high_s"] <= base["makespan_s"] + 1e-6
        assert gain["significant"] == (gain["makespan_low_s"] > 0)
    for gain in own:
        assert every["makespan_high_s"] >= gain["makespan_s"]
        assert every["makespan_s"] >= gain["makespan_s"] - CHANCE * base["makespan_s"]
        least = gain["network_bytes"] - CHANCE * base["network_bytes"]
        assert every["network_bytes"] >= least or every["makespan_s"] > gain["makespan_s"]
    return len(own)


def document_of(findings: list[Finding], simulation: Simulation, form: str = "json") -> Any:
    """Return the document that `lint` writes for the findings."""
    return json.loads(render(form, findings, Info(tool="t", subject="s", simulation=simulation)))


def gains(document: dict[str, Any]) -> dict[str, Any]:
    """Map the fingerprint of each finding to its gain."""
    return {f["fingerprint"]: f["gain"] for f in document["findings"]}


def check_outputs(analysis: Analysis, bundle: Bundle | None, where: Where, folder: Path) -> int:
    """Assert the invariants of the run, and equal gains in lint, the page, the hint file, explain,
    and the simulations of `hints` and `compare`; return the number of findings with a gain."""
    context = Context(analysis, bundle, where=where)
    findings = run_rules(context)
    simulation = context.simulation
    listed = document_of(findings, simulation)
    found = check_gains(listed)
    whole = {name: listed[name] for name in ("baseline", "all")}
    learned = learn([analysis])
    hints = with_gains(learned, simulation)

    page = collect(analysis, findings, hints, con=context.con, simulation=simulation)
    assert {name: page[name] for name in whole} == whole
    assert gains(page).items() <= gains(listed).items()
    results = document_of(findings, simulation, "sarif")["runs"][0]["results"]
    assert [r["properties"]["gain"] for r in results] == [f["gain"] for f in listed["findings"]]

    dump(hints, folder / "hints.json", force=True)
    kept = json.loads((folder / "hints.json").read_text())
    assert {name: kept.get(name) for name in whole} == whole
    of_rules = {rule["id"]: rule["gain"] for rule in kept["rules"]}
    shown = [row["gain"] for row in page["hints"]]
    assert shown == list(of_rules.values())[: len(shown)]
    rules = load(folder / "hints.json")
    for path in {path for rule in rules.rules for path in rule.examples[:1]}:
        rule = explain(rules, path.encode("utf-8", "surrogateescape"))["rule"]
        assert rule is None or rule["gain"] == of_rules[rule["id"]]

    alone = Simulation(analysis, where)
    again = with_gains(learned, alone)
    assert {name: alone.as_json()[name] for name in whole} == whole
    assert {rule.id: rule.gain and vars(rule.gain) for rule in again.rules} == of_rules
    return found
