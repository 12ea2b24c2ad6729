"""The real workflows: one file and one line each."""

from __future__ import annotations

from tests.e2e.real.model import Workflow
from tests.e2e.real.workflows import blast, bwa, library, montage, ranges, regions, words

WORKFLOWS: tuple[Workflow, ...] = (
    montage.WORKFLOW,
    blast.WORKFLOW,
    bwa.WORKFLOW,
    ranges.WORKFLOW,
    regions.WORKFLOW,
    library.WORKFLOW,
    words.WORKFLOW,
)
