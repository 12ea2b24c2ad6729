"""Renderers of findings: valid documents, and no name from a trace can break out of them."""

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
from tracehint.hintgen.calibration import read_rates
from tracehint.hintgen.lint import baseline
from tracehint.hintgen.lint.config import choose, find_config
from tracehint.hintgen.lint.finding import Finding, Savings, total
from tracehint.hintgen.lint.registry import RULES
from tracehint.hintgen.lint.render import FORMATS, Info, render
from tracehint.hintgen.lint.seconds import with_seconds
from tracehint.hintgen.query import text_column
from tracehint.hintgen.summary.saved import Saved


def finding(path: bytes = b"a/b.dat", **more: object) -> Finding:
    import pyarrow as pa

    shown = text_column(pa.array([path], pa.binary()))[0].as_py()
    values: dict[str, object] = {
        "code": "TP001", "name": "broadcast-without-replicas", "severity": "warning",
        "message": f"1 file {shown}", "template": shown, "files": 1, "bytes": 10,
        "saves": Savings(network_bytes=5 << 20), "confidence": 0.9, "fix": "tracehint hints x",
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
    assert first["saves"]["network_bytes"] == 5 << 20
    assert first["examples"] == ["a/b.dat"]
    assert document["suppressed"] == 2


@pytest.mark.parametrize("width", [40, 80, 200])
def test_text_fits_the_terminal(width: int) -> None:
    out = render("text", HOSTILE, info(width=width))
    from rich.cells import cell_len

    assert max(cell_len(line) for line in out.splitlines()) <= width
    assert "saves 5 MiB network" in " ".join(out.split())
    assert "no declared graph" in " ".join(out.split())


def some(code: str, count: int, size: int) -> list[Finding]:
    """Findings of one rule, the largest first."""
    names = [b"%s/%d.dat" % (code.encode(), i) for i in range(count)]
    return [
        finding(name, code=code, saves=Savings(network_bytes=(size - i) << 20), assumed=())
        for i, name in enumerate(names)
    ]


def test_the_text_folds_findings_by_rule() -> None:
    """A heading for each rule, the largest under it; one or two are all shown."""
    many, two, one = some("TP007", 12, 30), some("TP001", 2, 20), some("TV001", 1, 10)
    mixed = [many[0], two[0], *many[1:], two[1], *one]  # as they come: by what they save
    out = render("text", mixed, info(width=100))
    heads = [line for line in out.splitlines() if line[:1] == "T"]
    assert [line[:5] for line in heads] == ["TP007", "TP001", "TV001"]
    assert heads[0].endswith("12 findings, save 294 MiB network")
    assert heads[1].endswith("2 findings, save 39 MiB network")
    assert heads[2].endswith("saves 10 MiB network")
    body = " ".join(out.split())
    assert "and 11 more, 264 MiB network (--all): TP007/1.dat, TP007/2.dat" in body
    assert "TP007/0.dat" in body and "TP007/4.dat" not in body
    assert "TP001/1.dat" in body and body.count("saves 30 MiB network") == 1
    every = render("text", mixed, info(width=100, every=True))
    assert all(f"TP007/{i}.dat" in every for i in range(12)) and "(--all)" not in every
    assert every.count("TP007 broadcast") == 1


def test_the_page_folds_findings_by_rule() -> None:
    from tracehint.hintgen.draw.report.folded import folded

    rows = folded([*some("TP007", 3, 9), *some("TP001", 1, 4)])
    assert [(row["count"], row["said"]) for row in rows] == [
        (3, "24 MiB network"), (1, "4 MiB network")
    ]  # fmt: skip  # a table
    assert rows[0]["saves"]["network_bytes"] == 24 << 20
    assert rows[0]["first"]["template"] == "TP007/0.dat"
    assert [row["first_said"] for row in rows] == ["9 MiB network", ""]


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


def test_seconds_only_with_a_calibration_and_as_a_range(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "store.json"
    measured = {
        "schema": "tracehint.calibration/1", "store": "xattr",
        "calls": {"open": {"seconds": 2e-4, "low": 1e-4, "high": 4e-4, "samples": 9}},
        "write": {"bytes_per_s": 1 << 20, "bytes": 1}, "read": {"bytes_per_s": None},
    }  # fmt: skip  # a table
    path.write_text(json.dumps(measured))
    plain = finding(saves=Savings(network_bytes=8 << 20, operations=1000))
    (found,) = with_seconds([plain], read_rates(path))
    assert found.saves.seconds == (0.1, 8.4)
    assert "0.100 s to 8.40 s" in render("text", [found], info(width=120))
    assert " s to " not in render("text", [plain], info())
    measured["write"] = {"bytes_per_s": None}
    path.write_text(json.dumps(measured))
    with pytest.raises(InputError, match="no rate"):
        read_rates(path)
    for bad in ("{", "[]", '{"schema": "x"}', '{"schema": "tracehint.calibration/1", "calls": 1}'):
        path.write_text(bad)
        with pytest.raises(InputError):
            read_rates(path)


def test_two_ways_to_save_the_same_bytes_count_once() -> None:
    copies = finding(saves=Savings(network_bytes=50))
    nearer = finding(code="TP007", saves=Savings(network_bytes=30))
    found = [
        copies,
        nearer,
        replace(copies, consumers="other", saves=Savings(network_bytes=5)),
        replace(nearer, template="b", saves=Savings(7, 0, 9)),
    ]
    assert total(found, "network_bytes") == 50 + 5 + 7
    assert total(found, "storage_bytes") == 9
    assert "4 findings; to be freed: 9 B storage" in render("text", found, info())
    every = render("text", found, replace(info(), saved=Saved(62, 7)))
    told = "4 findings; all hints together: 62 B network, 7 B waiting; to be freed: 9 B storage"
    assert told in " ".join(every.split())


def test_a_remedy_is_printed_once() -> None:
    found = [finding(), finding(code="TP002"), finding(code="TV001", fix="delete it")]
    fixes = [line.strip() for line in render("text", found, info()).splitlines() if "fix:" in line]
    assert fixes == ["fix: tracehint hints x", "fix: as above (TP001)", "fix: delete it"]
