"""The results of `profile` for one run: one function per file, costly parts computed once."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.errors import TracehintError
from tracehint.schemas.plain import HeldFolder, hold, inside, is_own_folder, sibling_path
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.app.planning import DecidedPlanning
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.inputs import Input
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.lint.finding import Finding
    from tracehint.hintgen.match.match import Matcher


SMALL = 20_000  # tasks; for larger runs the steps are not parallel


@dataclass
class Work:
    """The run and the directory of its results; costly parts are computed once."""

    bundle: Path
    folder: Path
    cut: dict[str, Any] = field(default_factory=dict)  # options that define a task
    nodes: int | None = None  # number of nodes for savings; None: that of the run
    cluster: str | None = None  # to plan the next run for; None: a built-in model
    wait: Callable[[], None] | None = None  # waits for the thread that `begin` started

    @cached_property
    def run(self) -> Input:
        """The bundle and its analysis."""
        from tracehint.analyzer.model import Options
        from tracehint.hintgen.inputs import load_run

        return load_run(shorten(self.bundle), Options(nodes=self.nodes, **self.cut))

    @cached_property
    def hints(self) -> HintFile:
        """Rules for the next run with gains; for a named cluster its best ones with the plan."""
        from tracehint.hintgen.summary.rule_gains import with_gains

        simulation = self.wait_for_idle().lint.simulation
        decided = self.decision[0] if self.cluster else None
        if decided is not None:
            return with_gains(decided.hints, simulation, self.facts)
        return with_gains(self.learned, simulation, self.facts, self.matcher)

    @cached_property
    def facts(self) -> pa.Table:
        """Facts per file, from which rules are learned."""
        from tracehint.hintgen.learn.facts import facts_of

        return facts_of(self.run.analysis)

    @cached_property
    def learned(self) -> HintFile:
        """Rules learned file by file, without a plan."""
        from tracehint.hintgen.learn.rules import learn

        return learn([self.run.analysis], facts=[self.facts])

    @cached_property
    def matcher(self) -> Matcher:
        """Finds the rules that match a name, and caches the result."""
        from tracehint.hintgen.match.match import Matcher

        return Matcher(self.learned)

    @cached_property
    def decision(self) -> tuple[DecidedPlanning | None, str]:
        """The plan for the cluster and its summary, or None and the reason."""
        from tracehint.app.planning import try_decide

        run = self.run.analysis
        return try_decide(run, self.learned, self.cluster, self.nodes, self.facts, self.matcher)

    @cached_property
    def lint(self) -> Context:
        """The context of the lint rules for this run."""
        from tracehint.app.user_cluster import where_of
        from tracehint.hintgen.lint.context import Context

        run = self.run
        where = where_of(self.cluster, self.nodes, run.analysis, self.bundle)
        return Context(run.analysis, run.bundle, bundle_name=shorten(self.bundle), where=where)

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings of all lint rules."""
        from tracehint.hintgen.lint import run_rules

        return run_rules(self.lint)

    @cached_property
    def picture(self) -> bytes | TracehintError:
        """The graph as SVG, or the error that prevented it."""
        from tracehint.hintgen.report import dot
        from tracehint.hintgen.report.drawing import build, title

        drawn = build(self.run.analysis, con=self.lint.con)
        text = dot.to_dot(drawn, title(self.run.analysis.run, self.bundle))
        try:
            return dot.draw(text, "svg")
        except TracehintError as error:
            return error

    def begin(self) -> Analysis:
        """Analyze the run, and start a thread for picture and findings, which need no rules: DuckDB
        and Graphviz run while this thread learns rules and plans. For a large run they are made
        when needed, as parallel steps would add up their memory."""
        from tracehint.analyzer.execution.resources import Resources, cores, start_beside

        found = self.run.analysis
        small = found.tasks.num_rows <= SMALL
        self.wait = start_beside(self._picture_and_findings, Resources(cores() if small else 1))
        return found

    def _picture_and_findings(self) -> None:
        with contextlib.suppress(Exception):  # raised again, and reported, where the result is used
            _ = self.picture, self.findings

    def wait_for_idle(self) -> Work:
        """Wait for the thread that `begin` started, and return self."""
        if self.wait is not None:
            self.wait()
            self.wait = None
        return self


def shorten(path: Path) -> str:
    """Return the path relative to the working directory if it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def analysis_json(work: Work, path: Path) -> str:
    """Write the graph and the patterns, as `analyze --format json` prints them."""
    from tracehint.analyzer.output import json as output

    with path.open("wb") as stream:
        stream.writelines(output.write_json(work.run.analysis))
    return "graph and patterns"


def hints_json(work: Work, path: Path) -> str:
    """Write the rules for the next run."""
    from tracehint.hintgen.hints.hintfile import dump

    dump(work.hints, path, force=True)
    rules, refused = len(work.hints.rules), len(work.hints.refused)
    return f"{plural(rules, 'rule')} for the next run" + (f", {refused} refused" if refused else "")


def setfattr_script(work: Work, path: Path) -> str:
    """Write the rules as a script that the user can review."""
    from tracehint.adapters.apply.applier import check_keys
    from tracehint.adapters.paths import Paths, paths_in, remembered_paths
    from tracehint.adapters.plan import build_plan
    from tracehint.adapters.stores.registry import open_store
    from tracehint.adapters.stores.script import make_script
    from tracehint.app.output import write_result
    from tracehint.hintgen.hints.hintfile import load

    hints, store = load(path.with_name("hints.json")), open_store("xattr")
    run = paths_in(work.run.analysis.tasks, work.facts)
    there = set(run.files)
    others = [p for p in remembered_paths(hints, literal_only=True) if p not in there]
    known = work.hints
    same = known.plan is None and (hints.rules, hints.nodes) == (known.rules, known.nodes)
    matcher = work.matcher if same else None
    paths = Paths(files=others, declared=run.files, known=run.known)
    plan = build_plan(hints, paths, matcher=matcher, nodes=work.run.analysis.run["nodes"])
    check_keys(store, plan.targets, allow_trusted=False)
    script = make_script(hints, plan, store, inside=False)
    write_result(script.table, f"{path}.data", force=True)
    write_result(script.text, str(path), force=True, mode=0o777)
    return "the rules as a script to review"


def graph_svg(work: Work, path: Path) -> str:
    """Write the picture of the graph."""
    picture = work.wait_for_idle().picture
    if isinstance(picture, TracehintError):
        raise picture
    path.write_bytes(picture)
    return "the file/task graph"


def lint_text(work: Work, path: Path) -> str:
    """Write the findings as text."""
    from tracehint.schemas.wording import plural

    _render(work, path, "text")
    return plural(len(work.findings), "finding")


def lint_json(work: Work, path: Path) -> str:
    """Write the findings as JSON."""
    _render(work, path, "json")
    return "the same as JSON"


def _render(work: Work, path: Path, form: str) -> None:
    from tracehint.hintgen.lint import skipped_rules
    from tracehint.hintgen.lint.formats import Info, render
    from tracehint.hintgen.lint.registry import RULES, load
    from tracehint.version import __version__

    info = Info(
        tool=f"tracehint {__version__}",
        subject=shorten(work.bundle),
        rules={code: load(code).name for code in RULES},
        skipped=skipped_rules(work.lint),
        troubles=work.run.analysis.run.get("troubles", []),
        suppressed=0,
        simulation=work.lint.simulation,
        every=True,
        width=100,
        color=False,
    )
    path.write_text(render(form, work.findings, info) + "\n", encoding="utf-8")


def report_html(work: Work, path: Path) -> str:
    """Write the self-contained report."""
    from tracehint.hintgen.report.page import report_html

    text = report_html(work.run, work.hints, work.findings, work.lint)
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
    return "everything on one page"


# File name -> function that writes it and returns its description, in this order.
STAGES: dict[str, Callable[[Work, Path], str]] = {
    "analysis.json": analysis_json,
    "hints.json": hints_json,
    "hints.sh": setfattr_script,  # reads hints.json
    "graph.svg": graph_svg,
    "lint.txt": lint_text,
    "lint.json": lint_json,
    "report.html": report_html,
}


def results_folder(bundle: Path) -> Path:
    """Return `NAME.tracehint` beside `NAME.trace`."""
    name = bundle.name.removesuffix(".trace") if bundle.name != ".trace" else bundle.name
    return bundle.with_name(f"{name}.tracehint")


def prepare(bundle: Path, *, force: bool) -> HeldFolder:
    """Create and hold a directory for the results: numbered if it exists, unless `force`."""
    folder = results_folder(bundle)
    number = 1
    chosen = folder
    while True:
        place = sibling_path(bundle, chosen.name)
        try:
            if force and is_own_folder(place):
                held = hold(place, chosen)
                for name in [*STAGES, "hints.sh.data"]:
                    (held.inside / name).unlink(missing_ok=True)
                return held
            place.mkdir(mode=0o700, parents=True)
            return hold(place, chosen)
        except FileExistsError:
            number += 1
            chosen = folder.with_name(f"{folder.stem}-{number}{folder.suffix}")
        except OSError as error:
            raise TracehintError(
                f"{chosen}: cannot be created: {error.strerror}", "Choose another place with -o."
            ) from None


def write_all(work: Work) -> tuple[dict[str, str], dict[str, str]]:
    """Run every stage; return the descriptions of written files and the errors, by file name."""
    made: dict[str, str] = {}
    failed: dict[str, str] = {}
    for name, stage in STAGES.items():
        path = inside(work.folder) / name
        try:
            made[name] = stage(work, path)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("tracehint."):
                failed[name] = f"a package is missing: {error.name}"
        except TracehintError as error:
            failed[name] = str(error)
        except Exception as error:  # one failed stage must not prevent the others
            first = str(error).splitlines()[0] if str(error) else ""
            failed[name] = f"{type(error).__name__}: {first[:200]}"
    if shutil.disk_usage(inside(work.folder)).free == 0:
        failed.setdefault("disk", "no space left")
    return made, failed
