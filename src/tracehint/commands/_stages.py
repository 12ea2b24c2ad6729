"""What `profile` makes of a bundle: one function per file, listed in STAGES."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.errors import TracehintError
from tracehint.schemas.plain import is_own_folder

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.commands._planning import DecidedPlanning
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.inputs import Input
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.lint.finding import Finding


@dataclass
class Work:
    """The run and the directory that the results go to; costly parts are made once."""

    bundle: Path
    folder: Path
    cut: dict[str, Any] = field(default_factory=dict)  # what counts as a task
    nodes: int | None = None  # that savings are counted for; None: as the run had
    cluster: str | None = None  # that the next run is planned for; None: a ready-made one

    @cached_property
    def run(self) -> Input:
        """The bundle and its analysis."""
        from tracehint.analyzer.model import Options
        from tracehint.hintgen.inputs import load_run

        return load_run(short(self.bundle), Options(nodes=self.nodes, **self.cut))

    @cached_property
    def hints(self) -> HintFile:
        """The rules for the next run; where a cluster is known, those that win there, planned."""
        decided, _ = self.decision
        return decided.hints if decided is not None and decided.cluster else self.learned

    @cached_property
    def facts(self) -> pa.Table:
        """What rules are learned from, file by file."""
        from tracehint.hintgen.learn.facts import facts_of

        return facts_of(self.run.analysis)

    @cached_property
    def learned(self) -> HintFile:
        """The rules, chosen file by file."""
        from tracehint.hintgen.learn.rules import learn

        return learn([self.run.analysis], facts=[self.facts])

    @cached_property
    def decision(self) -> tuple[DecidedPlanning | None, str]:
        """What the run would gain, and the sentence that says it."""
        from tracehint.commands._planning import decided_or_why

        run = self.run.analysis
        return decided_or_why(run, self.learned, self.cluster, self.nodes, self.facts)

    @cached_property
    def lint(self) -> Context:
        """The run under the linter."""
        from tracehint.hintgen.lint.context import Context

        return Context(self.run.analysis, self.run.bundle, bundle_name=short(self.bundle))

    @cached_property
    def findings(self) -> list[Finding]:
        """What all rules find."""
        from tracehint.hintgen.lint import run_rules

        return run_rules(self.lint)


def analysis_json(work: Work, path: Path) -> str:
    """The graph and the patterns, as `analyze --format json` prints them."""
    from tracehint.analyzer.output import json as output

    with path.open("wb") as stream:
        stream.writelines(output.write_json(work.run.analysis))
    return "graph and patterns"


def hints_json(work: Work, path: Path) -> str:
    """The rules for the next run."""
    from tracehint.hintgen.hints.hintfile import dump

    dump(work.hints, path, force=True)
    rules, refused = len(work.hints.rules), len(work.hints.refused)
    return f"{rules} rules for the next run" + (f", {refused} refused" if refused else "")


def setfattr_script(work: Work, path: Path) -> str:
    """The rules as a script that a person can review."""
    from tracehint.adapters.learned import paths_in
    from tracehint.adapters.paths import Paths, remembered_paths
    from tracehint.adapters.plan import build_plan
    from tracehint.adapters.stores.act import check_keys
    from tracehint.adapters.stores.registry import open_store
    from tracehint.adapters.stores.script import make_script
    from tracehint.commands._output import write_result
    from tracehint.hintgen.hints.hintfile import load

    hints, store = load(work.folder / "hints.json"), open_store("xattr")
    run = paths_in(work.run.analysis, work.facts)
    there = set(run.files)
    others = [p for p in remembered_paths(hints, literal_only=True) if p not in there]
    plan = build_plan(hints, Paths(files=others, declared=run.files, known=run.known))
    check_keys(store, plan.targets, allow_trusted=False)
    script = make_script(hints, plan, store, inside=False)
    write_result(script.table, f"{path}.data", force=True)
    write_result(script.text, str(path), force=True, mode=0o777)
    return "the rules as a script to review"


def graph_svg(work: Work, path: Path) -> str:
    """The picture."""
    from tracehint.hintgen.draw import dot
    from tracehint.hintgen.draw.build import build
    from tracehint.hintgen.draw.model import title

    text = dot.to_dot(
        build(work.run.analysis, con=work.lint.con), title(work.run.analysis.run, work.bundle)
    )
    path.write_bytes(dot.draw(text, "svg"))
    return "the file/task graph"


def lint_text(work: Work, path: Path) -> str:
    """The findings."""
    from tracehint.hintgen.lint import skipped_rules
    from tracehint.hintgen.lint.registry import RULES, load
    from tracehint.hintgen.lint.render import Info, render
    from tracehint.hintgen.text.units import plural
    from tracehint.version import __version__

    info = Info(
        tool=f"tracehint {__version__}",
        subject=short(work.bundle),
        rules={code: load(code).RULE.name for code in RULES},
        skipped=skipped_rules(work.lint),
        troubles=work.run.analysis.run.get("troubles", []),
        suppressed=0,
        saved=work.lint.saved,
        every=True,
        width=100,
        color=False,
    )
    path.write_text(render("text", work.findings, info) + "\n", encoding="utf-8")
    return plural(len(work.findings), "finding")


def report_html(work: Work, path: Path) -> str:
    """The self-contained report."""
    from tracehint.hintgen.draw.report import report_html

    said = work.decision[1]
    text = report_html(work.run, work.hints, work.findings, work.lint, decision=said)
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
    return "everything on one page"


# file name -> what writes it, in this order
STAGES: dict[str, Callable[[Work, Path], str]] = {
    "analysis.json": analysis_json,
    "hints.json": hints_json,
    "hints.sh": setfattr_script,  # of the rules as they are in the file
    "graph.svg": graph_svg,
    "lint.txt": lint_text,
    "report.html": report_html,
}


def short(path: Path) -> str:
    """The path as seen from here, where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def results_folder(bundle: Path) -> Path:
    """`NAME.tracehint` beside `NAME.trace`."""
    name = bundle.name.removesuffix(".trace") if bundle.name != ".trace" else bundle.name
    return bundle.with_name(f"{name}.tracehint")


def prepare(folder: Path, *, force: bool) -> Path:
    """A directory for the results: numbered rather than overwritten, unless `force`."""
    number = 1
    chosen = folder
    while True:
        try:
            if force and is_own_folder(chosen):
                for name in [*STAGES, "hints.sh.data"]:
                    (chosen / name).unlink(missing_ok=True)
                return chosen
            chosen.mkdir(mode=0o700, parents=True)
            return chosen
        except FileExistsError:
            number += 1
            chosen = folder.with_name(f"{folder.stem}-{number}{folder.suffix}")
        except OSError as error:
            raise TracehintError(
                f"{chosen}: cannot be made: {error.strerror}", "Choose another place with -o."
            ) from None


def write_all(work: Work) -> tuple[dict[str, str], dict[str, str]]:
    """Run every stage; (what was written, what failed and why), by file name."""
    made: dict[str, str] = {}
    failed: dict[str, str] = {}
    for name, stage in STAGES.items():
        path = work.folder / name
        try:
            made[name] = stage(work, path)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("tracehint."):
                failed[name] = f"a package is missing: {error.name}"
        except TracehintError as error:
            failed[name] = str(error)
        except Exception as error:  # one stage must not take the others away
            first = str(error).splitlines()[0] if str(error) else ""
            failed[name] = f"{type(error).__name__}: {first[:200]}"
    if shutil.disk_usage(work.folder).free == 0:
        failed.setdefault("disk", "no space left")
    return made, failed
