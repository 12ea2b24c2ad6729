"""Small runs written as text, for the pages of the lint rules and for drawing tests.

One statement per line; `{1..4}` repeats the line; sizes take K, M, G:

    task NAME [type=] [host=] [site=] [start=] [end=] [exit=] [attempt=] [by=ENGINE] [engine]
    file PATH SIZE [role=] [deleted[=SECONDS]] [exact=]
    write TASK PATH [A-B] [at=] [until=] [bytes=] [ops=] [seq=] [small=] [how=] [superseded]
    read  TASK PATH [A-B] [at=] [until=] [bytes=] [ops=] [seq=] [small=] [how=] [peek] [uncertain]
    label PATH PATTERN [saves=] [confidence=] [group=] [placement=]
    meta TASK DIR OP COUNT [errors=]
    declare TASK in|out PATH [SIZE]        after TASK PARENT
    setfattr PATH NAME VALUE at=SECONDS
    nodes N   hosts A,B   sites A,B   blind CODE   lost N   duration SECONDS

The labels are stated, not derived: these runs test the consumers of an analysis.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from tests.support.run_model import Run, parse_size
from tests.support.run_verbs import VERBS


def expand(line: str) -> Iterator[str]:
    """Repeat a line per `{1..3}`; `{i*SIZE}` is its offset, `{i*SIZE+1}` the next one's."""
    match = re.search(r"\{(\d+)\.\.(\d+)\}", line)
    if not match:
        yield line
        return
    for value in range(int(match[1]), int(match[2]) + 1):
        numbered = line.replace(match[0], str(value))
        yield re.sub(
            r"\{i\*(\d+)([KMG]?)(\+1)?\}",
            lambda m, v=value: str((v - 1 + bool(m[3])) * parse_size(m[1] + m[2])),
            numbered,
        )


def parse_run(text: str) -> Run:
    """Return the run that `text` describes."""
    run = Run()
    run.raw.process(["sh", "wf.sh"])
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            for one in expand(line):
                words = shlex.split(one)
                plain = [w for w in words[1:] if not re.match(r"[a-z]+=", w)]
                options = dict(w.split("=", 1) for w in words[1:] if re.match(r"[a-z]+=", w))
                VERBS[words[0]](run, plain, options)
    return run
