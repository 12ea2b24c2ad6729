"""What `profile` needs when the command has ended is loaded while the command runs.

It would be loaded anyhow, so nothing is spent; and while a processor has nothing else to do, so the
command is not slowed down: before every few modules it is looked whether one is idle. Of a command
that leaves none idle, a small share of the processors' time is taken (docs/rationale/warming.md).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tracehint.commands._beside import beside_the_command

FIRST_S, EVERY_S = 0.5, 0.25  # commands that end sooner have it loaded afterwards
LOOK_S = 0.1  # for so long a processor must have been idle
SHARE = 0.02  # of the processors' time since the start: so much is taken though none is idle
_TICKS = os.sysconf("SC_CLK_TCK")  # of /proc/stat, a second
# With what these load, and the rules of lint, it is all of a profile (tests/test_warming.py).
MODULES = (
    "numpy", "numpy.random", "numpy.ma", "pyarrow", "pyarrow.compute", "pyarrow.parquet",
    "pyarrow.acero", "tracehint.schemas.ahead", "tracehint.schemas.one_file",
    "tracehint.schemas.segments", "tracehint.schemas.spool.convert", "tracehint.schemas.writer",
    "tracehint.commands._stages", "tracehint.adapters.engines.discover",
    "tracehint.hintgen.inputs", "tracehint.analyzer.shared.analysis",
    "tracehint.analyzer.execution.local", "tracehint.analyzer.run",
    "tracehint.analyzer.tasks.segmentation", "tracehint.analyzer.tasks.waiting",
    "tracehint.analyzer.flow.build", "tracehint.analyzer.patterns.facts",
    "tracehint.analyzer.patterns.hidden", "tracehint.analyzer.patterns.labels",
    "tracehint.analyzer.output.json", "tracehint.hintgen.learn.rules", "duckdb",
    "tracehint.analyzer.predict.workload", "tracehint.analyzer.predict.cluster_file",
    "tracehint.hintgen.plan.planner", "tracehint.hintgen.score.score",
    "tracehint.commands._planning", "tracehint.commands._in_seconds",
    "tracehint.commands._output", "tracehint.hintgen.plan.result",
    "tracehint.commands._plan_output", "rich.console", "rich.table",
    "tracehint.hintgen.summary.summary", "tracehint.hintgen.hints.hintfile",
    "tracehint.adapters.learned", "tracehint.adapters.stores.act",
    "tracehint.adapters.stores.registry", "tracehint.adapters.stores.script",
    "tracehint.hintgen.draw.dot", "tracehint.hintgen.draw.build",
    "tracehint.hintgen.lint.context", "tracehint.hintgen.lint.facts",
    "tracehint.hintgen.lint.in_force", "tracehint.hintgen.lint.render.text_",
    "tracehint.hintgen.draw.report", "tracehint.hintgen.draw.report.data",
    "tracehint.hintgen.draw.report.page", "tracehint.adapters.engines.emitters",
    "tracehint.analyzer.analyze", "tracehint.analyzer.output.sections",
    "tracehint.analyzer.output.jsonlines", "tracehint.analyzer.output.names",
    "tracehint.analyzer.patterns.edges",
    "tracehint.analyzer.patterns.ready", "tracehint.analyzer.patterns.attempts",
    "tracehint.analyzer.patterns.whole", "tracehint.analyzer.root_paths",
    "tracehint.analyzer.roots", "tracehint.analyzer.shared.entry",
    "tracehint.analyzer.shared.key", "tracehint.analyzer.shared.place",
)  # fmt: skip  # a table


def warmed() -> contextlib.AbstractContextManager[None]:
    """Load the modules until the block ends, as far as processors can be had meanwhile."""
    return beside_the_command(_load, None)  # a module in the middle is needed next


def _load(over: threading.Event) -> None:
    from tracehint.schemas.arrow import skip_pandas

    pause, left, start, spent = FIRST_S, modules(), time.monotonic(), time.thread_time()
    processors = len(os.sched_getaffinity(0))
    while not over.wait(pause):
        pause = EVERY_S
        before, began = idle_s(), time.monotonic()
        if over.wait(LOOK_S):
            return
        if idle_s() - before >= 0.9 * (time.monotonic() - began):
            pause, most_s = 0, LOOK_S / 2
        else:
            most_s = SHARE * processors * (time.monotonic() - start) + spent - time.thread_time()
        skip_pandas()
        until = time.thread_time() + most_s
        while time.thread_time() < until:
            name = next(left, "")
            if not name or over.is_set():
                return
            with contextlib.suppress(ImportError):  # whoever needs it says what is missing
                import_module(name)


def modules() -> Iterator[str]:
    """What is to be loaded, in this order; to be asked for the next when one is loaded."""
    yield from MODULES
    from tracehint.hintgen.lint.registry import RULES

    yield from (f"tracehint.hintgen.lint.rules.{name}" for name in RULES.values())


def idle_s() -> float:
    """Seconds for which the processors that this process may use had nothing to do, in all; 0
    where the kernel does not tell."""
    ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return 0.0
    rows = (line.split() for line in lines if line.startswith("cpu"))
    return sum(int(row[4]) for row in rows if row[0] in ours) / _TICKS
