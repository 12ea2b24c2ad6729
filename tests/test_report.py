"""The report page: its content, size and safety, and that it works in a browser."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.big import SIZE, chains, hostile_run
from tests.support.hostile import HOSTILE_NAMES
from tests.support.runs import parse_run
from tracehint.analyzer.model import Analysis
from tracehint.hintgen.compare.diff import diff
from tracehint.hintgen.export import FORMATS, export
from tracehint.hintgen.hints.model import Hint, HintFile, Rule
from tracehint.hintgen.inputs import Input
from tracehint.hintgen.lint import run_rules
from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.report import dot
from tracehint.hintgen.report.data import ROW_LIMITS, collect
from tracehint.hintgen.report.drawing import build
from tracehint.hintgen.report.page import page
from tracehint.hintgen.report.timeline import _spread, lanes

pytestmark = pytest.mark.slow

SIX = (Path(__file__).parent / "runs" / "six_patterns.txt").read_text()
PATIENCE_MS = 300_000  # a limit for a hanging browser, not for a busy machine
SHOTS = Path(__file__).parent / "output"
CHROMIUM = next(
    (p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None
)


def data_of(analysis: Analysis) -> dict[str, Any]:
    return collect(analysis, run_rules(Context(analysis)))


def six() -> dict[str, Any]:
    """Return a copy of the data of the run with all six patterns."""
    return deepcopy(_six())


@cache
def _six() -> dict[str, Any]:
    rule = Rule(
        id="r1",
        template="calibrated_{n}.bin",
        regex="x",
        directory="",
        producer="calibrate",
        consumers=("smooth",),
        pattern="pipeline",
        hints=(Hint("DP", "local", "create"),),
        confidence=0.9,
        evidence={"files": 4, "saves_bytes": 12 << 20},
    )
    analysis = parse_run(SIX).analysis()
    return collect(analysis, run_rules(Context(analysis)), HintFile((), {}, (rule,)))


def test_data_counts_what_the_run_did() -> None:
    data = six()
    assert data["totals"]["tasks"] == 16
    assert data["totals"]["handed_bytes"] == sum(
        [8 << 20, 4 * (2 << 20), 4 * (2 << 20), 8 << 20, 4 << 20, 8 << 20]
    )
    assert {m["pattern"] for m in data["mix"]} == {
        "scatter",
        "broadcast",
        "pipeline",
        "gather",
        "reduce",
        "distribute",
        "stage_out",
    }
    assert len(data["heat"]) == 2
    scatter = next(m for m in data["heat"] if m["pattern"] == "scatter")
    assert len(scatter["cells"]) == 64  # disjoint: each of the 64 parts has one reader
    assert all(share == 1 for _, _, share in scatter["cells"])
    assert len(data["timeline"]["bars"]) == 16
    moved = sum(sum(s["bytes"]) for s in data["timeline"]["io"]["series"])
    assert moved == pytest.approx(data["totals"]["read_bytes"] + data["totals"]["written_bytes"])


def test_patterns_carry_the_bytes_that_the_summary_counts() -> None:
    from tracehint.hintgen.summary.labelled import Labelled

    counted = {r["pattern"]: r["bytes"] for r in Labelled(parse_run(SIX).analysis()).mix()}
    assert {m["pattern"]: m["bytes"] for m in six()["mix"]} == counted


def test_an_imported_run_has_the_name_of_its_bundle_and_the_time_of_its_tasks() -> None:
    analysis = parse_run("task a end=4\ntask b start=4 end=9\nduration 900").analysis()
    analysis.run["command"] = []
    data = collect(analysis, [], None, "far/x.trace")
    assert data["title"] == "x.trace"
    assert (data["timeline"]["end_s"], data["run"]["duration_s"]) == (9, 900)


def test_lanes_do_not_overlap() -> None:
    spans = [(0.0, 4.0), (1.0, 2.0), (2.0, 5.0), (4.0, 6.0), (4.5, 5.0)]
    assert lanes(spans) == [0, 1, 1, 0, 2]


def test_bytes_are_spread_over_time_and_none_is_lost() -> None:
    import numpy as np

    values = _spread(np.array([100.0, 50.0]), np.array([0.0, 10.0]), np.array([24.0, 10.0]), 0.1)
    assert values.sum() == pytest.approx(150)
    assert values[0] == pytest.approx(100 / 240, rel=0.01)
    assert values[100] + values[99] == pytest.approx(50 + 200 / 240, rel=0.01)


def test_page_is_self_contained_and_names_its_scripts() -> None:
    text = page(six())
    assert not re.search(r"<(script|link|img)[^>]+(src|href)\s*=", text)
    assert "connect-src" not in text and "default-src 'none'" in text
    assert text.count("'sha256-") == 2


def test_size_for_a_thousand_tasks() -> None:
    text = page(data_of(chains(10, 100)))
    assert len(text.encode()) <= 3_000_000


def test_long_names_cost_rows_and_not_the_size() -> None:
    """2,000 tasks and files, each with a different type and a name of maximum length."""
    lines = [f"task {'t' * 200}{k}x start={k} end={k + 1}" for k in range(2000)]
    lines += [f"file {'d' * 250}/{k}{'n' * 250} 1M" for k in range(2000)]
    lines += [f"write {'t' * 200}{k}x {'d' * 250}/{k}{'n' * 250}" for k in range(2000)]
    data = collect(parse_run("\n".join(lines)).analysis(), [])
    assert len(page(data).encode()) <= 3_000_000
    assert data["totals"]["tasks"] == 2000
    assert data["left_out"]["files"] + len(data["files"]["path"]) == 2000
    assert data["left_out"]["tasks"] + len(data["tasks"]["name"]) == 2000
    assert len(data["graph"]["nodes"]) < 500


def test_more_files_than_fit_are_left_out_and_said() -> None:
    data = data_of(chains(2, ROW_LIMITS[0] // 2 + 50))
    assert data["left_out"]["files"] == 101
    assert len(data["files"]["path"]) == ROW_LIMITS[0]


def test_hostile_names_are_data() -> None:
    text = page(data_of(hostile_run()))
    assert text.lower().count("</script>") == 3
    assert text.count("</title>") == 1
    (raw,) = re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)
    data = json.loads(raw)
    assert len(data["files"]["path"]) == len(HOSTILE_NAMES)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", raw)


SPARSE = ["", "task a engine", "task a\nfile x 0\nwrite a x", "task a start=0 end=0\nfile x 1K"]


def without_measures() -> Analysis:
    """Return a run whose collector recorded only names and order."""
    import pyarrow as pa

    analysis = parse_run(
        "task a\ntask b start=3\nfile x 1K\nwrite a x\nread b x\nlabel x pipeline saves=1M"
    ).analysis()
    unknown = {
        "tasks": ["end_s", "exit_status", "command"], "files": ["size_bytes", "exact_share"],
        "consumers": ["cover", "ranges", "first_s", "last_s"],
        "producers": ["first_s", "last_s", "ranges"], "patterns": ["evidence", "placement"],
    }  # fmt: skip  # a table
    for name, columns in unknown.items():
        table = getattr(analysis, name)
        for column in columns:
            index = table.column_names.index(column)
            field = table.schema.field(index)
            table = table.set_column(index, field, pa.nulls(table.num_rows, field.type))
        setattr(analysis, name, table)
    return analysis


@pytest.mark.parametrize("text", SPARSE)
def test_runs_with_next_to_nothing(text: str, tmp_path: Path) -> None:
    run = parse_run(text)
    analysis = run.analysis()
    assert run_rules(Context(analysis, run.bundle())) == []
    assert dot.to_dot(build(analysis)).startswith("digraph")
    assert page(data_of(analysis)).startswith("<!DOCTYPE html>")
    assert diff(analysis, analysis) == []
    for name in FORMATS:
        export(Input("run", analysis), name, tmp_path / name)
        assert (tmp_path / name).exists()


def test_what_was_not_measured_is_shown_as_unknown() -> None:
    analysis = without_measures()
    (finding,) = run_rules(Context(analysis))
    assert "(?)" in finding.message
    assert data_of(analysis)["files"]["size_bytes"] == [None]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH (apt install chromium)")
    with api.sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=sandbox, timeout=PATIENCE_MS
        )
        yield started
        started.close()


class Window:
    """A browser window that records any error, request or dialog of its page."""

    def __init__(self, browser: Any, **context: Any) -> None:
        self.trouble: list[str] = []
        self.folded: list[bool] = []  # whether each section was folded when the page was ready
        self.path = Path()
        made = browser.new_context(**context)
        made.set_default_timeout(PATIENCE_MS)
        self.page = made.new_page()
        self.page.on("console", lambda m: self.trouble.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.trouble.append(f"error: {e}"))
        self.page.on("dialog", lambda d: (self.trouble.append(f"dialog: {d.message}"), d.dismiss()))
        self.page.on("request", lambda r: r.url == self.path.as_uri() or self._request(r.url))

    def open(self, path: Path) -> Window:
        """Open the page, wait until it is drawn, and return the window."""
        self.path = path
        self.trouble.clear()
        begin = time.monotonic()
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]")
        self.seconds = time.monotonic() - begin
        self.page.wait_for_selector("html[data-complete=yes]")
        self.folded = self.page.evaluate(
            """() => [...document.querySelectorAll('.fold')].map((part) => {
                 const was = !part.open; part.open = true; return was; })"""
        )
        return self

    def _request(self, url: str) -> None:
        if not url.startswith(("data:", "blob:")):
            self.trouble.append(f"request: {url}")

    def shot(self, name: str) -> None:
        SHOTS.mkdir(exist_ok=True)
        self.page.wait_for_timeout(300)
        self.page.screenshot(path=str(SHOTS / f"report-{name}.png"), full_page=True)
        assert (SHOTS / f"report-{name}.png").stat().st_size > 20_000


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(data: dict[str, Any]) -> Path:
        path = tmp_path / "r.html"
        path.write_text(page(data), encoding="utf-8")
        return path

    return write


WIDE = {"viewport": {"width": 1400, "height": 1000}}


@pytest.fixture(scope="module")
def wide(chromium: Any) -> Window:
    """One window for many tests: starting its process takes longer than most tests."""
    return Window(chromium, **WIDE)


@pytest.fixture
def window(wide: Window) -> Iterator[Window]:
    """The shared window; its page is closed after each test, because drawn pages are large."""
    yield wide
    wide.page.goto("about:blank")


@pytest.fixture(scope="module")
def opened(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Window:
    """The page of the run with all six patterns, for tests that do not change it."""
    path = tmp_path_factory.mktemp("page") / "r.html"
    path.write_text(page(six()), encoding="utf-8")
    may = ["clipboard-read", "clipboard-write"]
    return Window(chromium, permissions=may, **WIDE).open(path)


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("light", WIDE),
        # only the colours differ
        pytest.param("dark", {**WIDE, "color_scheme": "dark"}, marks=pytest.mark.full),
        ("narrow", {"viewport": {"width": 390, "height": 844}}),
    ],
)
def test_loads_without_trouble(chromium: Any, write: Any, name: str, context: Any) -> None:
    opened = Window(chromium, **context).open(write(six()))
    opened.shot(name)
    wide = opened.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, "the page scrolls sideways"
    assert opened.trouble == []
    theme = opened.page.evaluate("document.documentElement.dataset.theme")
    assert theme == ("dark" if name == "dark" else "light")
    # something is drawn: the canvases have more than one colour
    for place in ("canvas", "timeline-chart", "flow-chart", "ranges-chart"):
        colors = opened.page.evaluate(
            """id => Math.max(...[...document.querySelectorAll('#' + id + ' canvas')].map(c => {
                 const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
                 const seen = new Set();
                 for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i+1] << 8 | d[i+2]);
                 return seen.size; }))""",
            place,
        )
        assert colors > 5, place
    if name == "narrow":
        cells_are_rows(opened)
    opened.page.context.close()


def cells_are_rows(opened: Window) -> None:
    """Check that on a phone each table cell is a line with the name of its column."""
    cells = opened.page.locator("#files-table tbody tr").first.locator("td")
    boxes = [box for box in (cells.nth(i).bounding_box() for i in range(cells.count())) if box]
    assert all(b["y"] >= a["y"] + a["height"] - 1 for a, b in itertools.pairwise(boxes))
    assert cells.first.get_attribute("data-label") == "File"
    assert cells.first.evaluate("e => getComputedStyle(e, '::before').content") != "none"


def test_all_below_the_first_screen_is_folded_and_its_links_open_it(
    window: Window, write: Any
) -> None:
    opened = window.open(write(six()))
    assert len(opened.folded) >= 8 and all(opened.folded)
    opened.page.reload()
    opened.page.wait_for_selector("html[data-complete=yes]")
    assert not opened.page.locator("#stages-table").is_visible()
    assert opened.page.locator("#tables h2").is_visible()
    opened.page.click("nav a[href='#tables']")
    assert opened.page.locator("#stages-table").is_visible()
    assert not opened.page.locator("#findings-table").is_visible()


def test_rules_for_other_names_are_folded_away(window: Window, write: Any) -> None:
    data = six()
    data["hints"].append({**data["hints"][0], "template": "{dirs}{name}", "seen": False})
    opened = window.open(write(data))
    place = opened.page.locator("#hints-body")
    assert place.get_by_text("calibrated_{n}.bin").is_visible()
    assert not place.get_by_text("{dirs}{name}").is_visible()
    place.locator("summary").click()
    assert place.get_by_text("{dirs}{name}").is_visible()
    assert opened.trouble == []


def test_ticks_of_time_are_round(window: Window, write: Any) -> None:
    for end, wanted in ((5000, ("20 min", "40 min", "1 h")), (95, ("10 s", "1 min", "1:30 min"))):
        data = data_of(parse_run(f"task a end={end}\nfile x 1M\nwrite a x").analysis())
        opened = window.open(write(data))
        # ECharts draws on a canvas: its labels are read from its model
        texts = opened.page.evaluate("""() => {
            const model = TH.echarts.getInstanceByDom(document.getElementById('timeline-chart'));
            return model.getModel().getComponent('xAxis', 1).axis.getViewLabels()
                .map(l => l.formattedLabel); }""")
        assert set(wanted) <= set(texts), texts


# Each takes seconds in a browser: the emptiest, one with a little of all, one without measures.
OPENED = [pytest.param(text, marks=[pytest.mark.full] * (text in SPARSE[1::2])) for text in SPARSE]


@pytest.mark.parametrize("text", [*OPENED, None])
def test_sparse_runs_load_without_trouble(window: Window, write: Any, text: str | None) -> None:
    analysis = without_measures() if text is None else parse_run(text).analysis()
    assert window.open(write(data_of(analysis))).trouble == []


def test_search_fold_and_evidence(opened: Window) -> None:
    tab = opened.page
    status = tab.locator("#graph-status")
    folded = tab.locator("#node-list li").count()
    tab.fill("#search", "calibrated_3")
    assert status.text_content() == "1 match in 1 node"
    tab.press("#search", "Enter")
    panel = tab.locator("#evidence")
    assert "calibrated_3.bin" in (panel.text_content() or "")
    assert "pipeline" in (panel.text_content() or "")
    panel.get_by_role("button", name="smooth_3").click()
    assert "smooth_3" in (panel.locator("h3").text_content() or "")
    tab.fill("#search", "")
    tab.click("#unfold")
    assert tab.locator("#node-list li").count() == 16 + 21
    tab.click("#fold")
    assert tab.locator("#node-list li").count() == folded
    tab.locator("#node-list summary").click()
    tab.locator("#node-list").get_by_role("button", name="calibrated_*.bin").click()
    panel.get_by_role("button", name="Unfold").click()
    assert tab.locator("#node-list li").count() == folded + 3
    assert opened.trouble == []


def test_tables_sort_and_filter_by_keyboard(opened: Window) -> None:
    tab = opened.page
    table = tab.locator("#files-table")
    size = table.get_by_role("button", name="Size")
    size.focus()
    tab.keyboard.press("Enter")
    assert table.locator("th[aria-sort=descending]").text_content() == "Size"
    assert table.locator("tbody tr").first.locator("td").nth(4).text_content() == "8 MiB"
    tab.keyboard.press("Enter")
    assert table.locator("th[aria-sort=ascending]").count() == 1
    assert table.locator("tbody tr").first.locator("td").nth(4).text_content() == "1 KiB"
    table.get_by_role("searchbox").fill("scatter")
    assert table.locator("tbody tr").count() == 1
    canvas = tab.locator("#canvas")
    canvas.focus()
    tab.keyboard.press("+")
    tab.keyboard.press("ArrowDown")
    assert opened.trouble == []


def test_hint_is_copied(opened: Window) -> None:
    opened.page.get_by_role("button", name="Copy DP=local").click()
    opened.page.get_by_role("button", name="Copied").wait_for()
    assert opened.page.evaluate("navigator.clipboard.readText()") == "DP=local"


def test_names_of_every_element_are_there_for_screen_readers(opened: Window) -> None:
    nameless = opened.page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, [role=img]')]
             .filter(e => !(e.textContent.trim() || e.getAttribute('aria-label')
                            || e.labels?.length))
             .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    levels = opened.page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3')].map(e => Number(e.tagName[1]))"
    )
    assert levels[0] == 1 and all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_hostile_names_stay_text(window: Window, write: Any) -> None:
    opened = window.open(write(data_of(hostile_run())))
    tab = opened.page
    tab.fill("#search", "script")
    tab.press("#search", "Enter")
    tab.hover("#timeline-chart canvas", position={"x": 300, "y": 60})
    counts = tab.evaluate(
        "['script', 'img', 'iframe', 'style', 'b', 'a[href^=javascript]']"
        ".map(s => document.querySelectorAll(s).length)"
    )
    assert counts == [3, 0, 0, 2, 0, 0]  # the page's style and the graph library's
    assert opened.trouble == []


def test_ten_thousand_tasks_open_folded(window: Window, write: Any) -> None:
    data = data_of(chains(20, 500))
    assert data["totals"]["handed_bytes"] == 19 * 500 * SIZE
    path = write(data)
    opened = window.open(path)
    assert opened.trouble == []
    opened.shot("10000-tasks")
    print(f"10,000 tasks: usable after {opened.seconds:.2f} s")


def predicted(name: str = "moosefs, local, 5 nodes") -> dict[str, Any]:
    """Return a prediction in the command's format: two configurations, and the tasks of one."""
    points = [
        {"name": title, "cluster": "c", "placement": placement, "nodes": nodes, "seconds": seconds,
            "seconds_low": seconds - 1, "seconds_high": seconds + 1, "network_bytes": 10**6,
            "cost": None, "stages": []}
        for title, placement, nodes, seconds in ((name, "local", 5, 3.0), ("b", "default", 10, 4.0))
    ]  # fmt: skip  # a table
    tasks = [
        {"name": "calibrate_1", "node": "node1", "start": 0.0, "end": 2.0},
        {"name": "never seen", "node": "node2", "start": 1.0, "end": 3.0},
        {"name": "smooth_1", "node": "node1", "start": 1.0, "end": 3.0},
    ]
    return {
        "configurations": points,
        "best": {"seconds": name, "cost": None},
        "assumptions": ["all is well"],
        "shown": {**points[0], "tasks": tasks},
    }


def test_a_prediction_is_points_and_bars_that_do_not_overlap() -> None:
    analysis = parse_run(SIX).analysis()
    found = collect(analysis, [], prediction=predicted())["whatif"]
    assert [p["nodes"] for p in found["points"]] == [5, 10]
    assert found["best"]["seconds"] == found["shown"] == "moosefs, local, 5 nodes"
    bars = found["timeline"]["bars"]
    assert [(b[0], b[4]) for b in bars] == [(0, "calibrate_1"), (1, "smooth_1"), (2, "never seen")]
    assert [x["name"] for x in found["timeline"]["hosts"]] == ["node1", "node2"]
    assert collect(analysis, [])["whatif"] is None


def test_what_if_is_drawn_and_its_names_stay_text(window: Window, write: Any) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    analysis = parse_run(SIX).analysis()
    opened = window.open(write(collect(analysis, [], prediction=predicted(evil))))
    assert opened.page.locator("#what-if").is_visible()
    assert evil in opened.page.locator("#whatif-note").inner_text()
    for place in ("whatif-chart", "whatif-timeline"):
        assert opened.page.locator(f"#{place} canvas").count() >= 1
    assert opened.trouble == []
    without = window.open(write(six()))
    assert not without.page.locator("#what-if").is_visible()
    assert without.trouble == []
