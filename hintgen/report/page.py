"""The report: one self-contained HTML page without network requests."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from tracehint.hintgen.text.escape import html, json_in_script

if TYPE_CHECKING:
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.inputs import Input
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.lint.finding import Finding


def report_html(
    run: Input,
    hints: HintFile | None = None,
    findings: Sequence[Finding] | None = None,
    context: Context | None = None,
    prediction: dict[str, Any] | None = None,
    decision: str = "",
    comparison: dict[str, Any] | None = None,
    *,
    as_data: bool = False,
) -> str:
    """Return the HTML page of a run, with the findings of lint (None: run here) and, if given, the
    hint rules. `context`: the run's lint context if it exists; its database is used for the page.
    `prediction`: a sweep for the panel "What if" (timeline.what_if). `decision`: the first
    sentence of the page. `comparison`: of an earlier run with this one, for the panel "Compare"
    (compare/proof.py). `as_data`: return the page's data as JSON instead."""
    from tracehint.hintgen.lint import run_rules
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.report.data import collect

    context = context or Context(run.analysis, run.bundle, bundle_name=run.name)
    if findings is None:
        findings = run_rules(context)
    data = collect(
        run.analysis,
        findings,
        hints,
        run.name,
        con=context.con,
        simulation=context.simulation,
        prediction=prediction,
        decision=decision,
        comparison=comparison,
        labelled=context.labelled,
    )
    return json.dumps(data, indent=1) + "\n" if as_data else page(data)


ASSETS = resources.files("tracehint.hintgen.report") / "assets"


def page(data: dict[str, Any]) -> str:
    """Return HTML text. The content security policy lists the hash of each script and allows no
    connection, so only the scripts of this tool run and nothing is fetched."""
    vendor = _script(_read("vendor/vendor.min.js"))
    names = sorted(p.name for p in (ASSETS / "js").iterdir() if p.name.endswith(".js"))
    own = "\n".join(_read(f"js/{name}") for name in names)
    script = _script(f'"use strict";\n(() => {{\n{own}\n}})();\n')
    hashes = " ".join(f"'sha256-{_hash(text)}'" for text in (vendor, script))
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "CSP": policy,
        "TITLE": html(f"{data['title'][:80]} - tracehint"),
        "CSS": _read("report.css"),
        "LICENCES": _licences(),
        "DATA": json_in_script(data),
        "VENDOR": vendor,
        "SCRIPT": script,
    }
    # One pass, so that placeholders inside the data are not replaced.
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda m: parts[m[1]], _read("report.html"))


def _read(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _licences() -> str:
    """Return the licences of the libraries: every copy must include them, and a page is a copy."""
    lines = _read("vendor/LICENSES.txt").splitlines()
    return "\n".join(html(line.replace("\t", "    ")) for line in lines)


def _script(text: str) -> str:
    """Escape script text so that it cannot end its element; the code's meaning is the same."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
