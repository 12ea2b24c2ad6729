"""What `profile` makes of a bundle: one function per file, listed in STAGES."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tracehint.commands._work import Work, short
from tracehint.errors import TracehintError
from tracehint.schemas.plain import is_own_folder


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
    run = paths_in(work.run.analysis.tasks, work.facts)
    there = set(run.files)
    others = [p for p in remembered_paths(hints, literal_only=True) if p not in there]
    known = work.learned
    same = (hints.rules, hints.nodes) == (known.rules, known.nodes)
    matcher = work.matcher if same else None
    paths = Paths(files=others, declared=run.files, known=run.known)
    plan = build_plan(hints, paths, matcher=matcher)
    check_keys(store, plan.targets, allow_trusted=False)
    script = make_script(hints, plan, store, inside=False)
    write_result(script.table, f"{path}.data", force=True)
    write_result(script.text, str(path), force=True, mode=0o777)
    return "the rules as a script to review"


def graph_svg(work: Work, path: Path) -> str:
    """The picture."""
    picture = work.joined().picture
    if isinstance(picture, TracehintError):
        raise picture
    path.write_bytes(picture)
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
