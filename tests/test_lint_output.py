"""Renderers of findings produce valid documents that names from a trace cannot break out of."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import replace
from xml.etree import ElementTree

import jsonschema
import pytest

from tests.support.hostile import HOSTILE_NAMES
from tests.support.sarif import SARIF_SUBSET
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.gain import Baseline, Gain
from tracehint.hintgen.lint import baseline
from tracehint.hintgen.lint.config import choose, find_config
from tracehint.hintgen.lint.finding import Finding, Savings, freed_storage
from tracehint.hintgen.lint.formats import FORMATS, Info, render
from tracehint.hintgen.lint.registry import RULES
from tracehint.hintgen.query import text_column


def finding(path: bytes = b"a/b.dat", **more: object) -> Finding:
    import pyarrow as pa

    shown = text_column(pa.array([path], pa.binary()))[0].as_py()
    values: dict[str, object] = {
        "code": "TP001", "name": "broadcast-without-replicas", "severity": "warning",
        "message": f"1 file {shown}", "template": shown, "files": 1, "bytes": 10,
        "saves": Savings(storage_bytes=5 << 20), "confidence": 0.9, "fix": "tracehint hints x",
        "examples": (path,), "producers": shown, "consumers": shown, "assumed": (shown,),
    }  # fmt: skip  # a table
    return Finding(**(values | more))  # type: ignore[arg-type]


def info(**more: object) -> Info:
    values: dict[str, object] = {
        "tool": "tracehint 0.1.0", "subject": "run.trace", "rules": {"TP001": "x", "TD001": "y"},
        "skipped": {"TD001": "declared"},
    }  # fmt: skip  # a table
    return Info(**(values | more))  # type: ignore[arg-type]


HOSTILE = [finding(name) for name in HOSTILE_NAMES]


@pytest.mark.parametrize("fmt", FORMATS)
def test_no_control_character_leaves_a_renderer(fmt: str) -> None:
    out = render(fmt, HOSTILE, info(subject="a\x1b[2J\nb"))
    bad = {c for c in out if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl")}
    assert not bad
    out.encode("utf-8")


def test_sarif_fits_the_standard() -> None:
    document = json.loads(render("sarif", HOSTILE, info(workflow="wf.mf")))
    jsonschema.validate(document, SARIF_SUBSET)
    run = document["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[r["ruleIndex"]]["id"] for r in run["results"]] == ["TP001"] * len(HOSTILE)
    assert len({r["id"] for r in rules}) == len(rules)
    for result in run["results"]:
        for location in result["locations"]:
            uri = location["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"([A-Za-z0-9._~/-]|%[0-9A-F]{2})+", uri)


def test_github_has_one_command_a_line() -> None:
    lines = render("github", HOSTILE, info(workflow="a,b:c")).splitlines()
    assert len(lines) == len(HOSTILE)
    assert all(line.startswith("::warning file=a%2Cb%3Ac,title=TP001 ") for line in lines)
    assert all(line.count("%") == len(re.findall("%(25|2C|3A)", line)) for line in lines)


def test_junit_counts_failed_and_skipped_rules() -> None:
    root = ElementTree.fromstring(render("junit", HOSTILE, info()).encode())
    assert root.attrib["tests"] == "2"
    assert root.attrib["failures"] == "1"
    assert root.attrib["skipped"] == "1"
    assert len(root.findall(".//failure")) == len(HOSTILE)


def test_json_names_files_and_savings() -> None:
    document = json.loads(render("json", [finding()], info(suppressed=2)))
    (first,) = document["findings"]
    assert first["saves"]["storage_bytes"] == 5 << 20
    assert first["gain"] is None and "placed" not in first
    assert first["examples"] == ["a/b.dat"]
    assert document["suppressed"] == 2


@pytest.mark.parametrize("width", [40, 80, 200])
def test_text_fits_the_terminal(width: int) -> None:
    out = render("text", HOSTILE, info(width=width))
    from rich.cells import cell_len

    assert max(cell_len(line) for line in out.splitlines()) <= width
    assert "saves 5 MiB storage" in " ".join(out.split())
    assert "no declared graph" in " ".join(out.split())


def some(code: str, count: int, size: int) -> list[Finding]:
    """Return findings of one rule, the largest first."""
    names = [b"%s/%d.dat" % (code.encode(), i) for i in range(count)]
    return [
        finding(name, code=code, saves=Savings(storage_bytes=(size - i) << 20), assumed=())
        for i, name in enumerate(names)
    ]


def test_the_text_folds_findings_by_rule() -> None:
    """Each rule has a heading with its largest findings; one or two findings are all shown."""
    many, two, one = some("TP007", 12, 30), some("TP001", 2, 20), some("TV001", 1, 10)
    mixed = [many[0], two[0], *many[1:], two[1], *one]  # in input order: by savings
    out = render("text", mixed, info(width=100))
    heads = [line for line in out.splitlines() if line[:1] == "T"]
    assert [line[:5] for line in heads] == ["TP007", "TP001", "TV001"]
    assert heads[0].endswith("12 findings, save 294 MiB storage")
    assert heads[1].endswith("2 findings, save 39 MiB storage")
    assert heads[2].endswith("saves 10 MiB storage")
    body = " ".join(out.split())
    assert "and 11 more, 264 MiB storage (--all): TP007/1.dat, TP007/2.dat" in body
    assert "TP007/0.dat" in body and "TP007/4.dat" not in body
    assert "TP001/1.dat" in body and body.count("saves 30 MiB storage") == 1
    every = render("text", mixed, info(width=100, every=True))
    assert all(f"TP007/{i}.dat" in every for i in range(12)) and "(--all)" not in every
    assert every.count("TP007 broadcast") == 1


def test_the_page_folds_findings_by_rule() -> None:
    from tracehint.hintgen.report.data import fold_findings

    own = Gain(2.0, 1.0, 3.0, 30 << 20, True)
    rows = fold_findings(
        [finding(gain=own), *some("TP007", 3, 9)], Baseline("c", 2, 10.0, 40 << 20)
    )
    assert [row["count"] for row in rows] == [1, 3]
    assert rows[1]["saves"]["storage_bytes"] == 24 << 20
    assert rows[1]["first"]["template"] == "TP007/0.dat"
    saves = "saves 2.00 s (1.00 s to 3.00 s), 30 MiB network traffic, 5 MiB storage"
    assert [row["first_saves"] for row in rows] == [saves, "saves 9 MiB storage"]
    assert rows[0]["first"]["gain"] == vars(own)


def test_text_of_a_clean_run() -> None:
    assert render("text", [], info(skipped={})) == "No findings."


def test_baseline_hides_what_it_lists_and_nothing_else(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "base.json"
    path.write_text(baseline.dump(HOSTILE[:3]))
    fresh, hidden = baseline.split(HOSTILE, baseline.read(path))
    assert hidden == 3
    assert len(fresh) == len(HOSTILE) - 3
    assert len({f.fingerprint for f in HOSTILE}) == len(HOSTILE)
    path.write_text("{")
    with pytest.raises(InputError):
        baseline.read(path)


def test_configuration_is_found_upwards(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "tracehint.toml").write_text('[lint]\nignore = ["TV"]\nblock-size = 1048576\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    found = find_config(below)
    assert found.settings.block_size == 1 << 20
    assert not any(c.startswith("TV") for c in choose(found.select, found.ignore))
    (tmp_path / "tracehint.toml").write_text("[lint]\nblok-size = 1\n")
    with pytest.raises(InputError, match="blok-size"):
        find_config(below)


def test_select_and_ignore() -> None:
    assert choose([], []) == list(RULES)
    assert choose(["tp"], ["TP001"]) == [c for c in RULES if c[:2] == "TP" and c != "TP001"]
    with pytest.raises(UsageError):
        choose(["XX1"], [])


def test_two_ways_to_free_the_same_bytes_count_once() -> None:
    found = [
        finding(saves=Savings(storage_bytes=50)),
        finding(code="TP007", saves=Savings(storage_bytes=30)),
        replace(finding(saves=Savings(storage_bytes=5)), consumers="other"),
        replace(finding(code="TP007", saves=Savings(storage_bytes=9)), template="b"),
    ]
    assert freed_storage(found) == 50 + 5 + 9
    assert "4 findings; reclaimable storage: 64 B" in render("text", found, info())


def test_a_remedy_is_printed_once() -> None:
    found = [finding(), finding(code="TP002"), finding(code="TV001", fix="delete it")]
    fixes = [line.strip() for line in render("text", found, info()).splitlines() if "fix:" in line]
    assert fixes == ["fix: tracehint hints x", "fix: as above (TP001)", "fix: delete it"]
