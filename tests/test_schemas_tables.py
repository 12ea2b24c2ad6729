"""What stands in the schemas and in C: the same."""

from __future__ import annotations

import re
from pathlib import Path

from tracehint.schemas.tables import ENV_MARKERS

HEADER = Path(__file__).parents[1] / "collectors" / "markers.h"


def test_recorders_keep_the_variables_of_the_schema() -> None:
    assert tuple(re.findall(r'"(\w+)="', HEADER.read_text())) == ENV_MARKERS
