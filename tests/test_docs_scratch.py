"""The pages on how to extend the program, carried out in a copy of the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.scratch import ROOT, carried_out

HOW_TO = ROOT / "docs" / "how-to"
# page -> files that it may touch at most
PAGES = {
    "add-a-pattern.md": 5,
    "add-an-emitter.md": 2,
    "add-a-system-call.md": 2,
    "add-a-report-panel.md": 4,
}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_page_leads_from_nothing_to_its_output(page: str, tmp_path: Path) -> None:
    text = (HOW_TO / page).read_text()
    touched, printed = carried_out(text, tmp_path)
    assert 0 < len(set(touched)) <= PAGES[page]
    assert "It prints" in text and printed
    assert len(text.splitlines()) <= 120
