"""The pages on how to extend the program, carried out in a copy of the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ebpf import require_ebpf
from tests.support.scratch import ROOT, carried_out

HOW_TO = ROOT / "docs" / "how-to"
# page -> maximum number of files that it may touch
PAGES = {
    "add-a-pattern.md": 4,
    "add-an-emitter.md": 2,
    "add-a-system-call.md": 2,
    "add-a-report-panel.md": 4,
}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_page_leads_from_nothing_to_its_output(page: str, tmp_path: Path) -> None:
    text = (HOW_TO / page).read_text()
    # the eBPF part needs root and has a test of its own
    touched, printed = carried_out(text.partition("\n## With eBPF\n")[0], tmp_path)
    assert 0 < len(set(touched)) <= PAGES[page]
    assert "It prints" in text and printed
    assert len(text.splitlines()) <= 120


@pytest.mark.slow
@pytest.mark.ebpf
def test_a_system_call_is_added_for_both_recorders(tmp_path: Path) -> None:
    require_ebpf()
    page = "add-a-system-call.md"
    touched, printed = carried_out((HOW_TO / page).read_text(), tmp_path)
    assert len(set(touched)) == PAGES[page]
    assert "/data chmod 1" in printed and "eBPF: chmod 1" in printed
