"""CPython's own tests of processes and files give the same results with the preload library."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.creation import Tagged
from tests.support.hints import hint_file, rule

MODULES = (
    "test_subprocess", "test_os", "test_io", "test_multiprocessing_fork",
    "test_multiprocessing_main_handling",
)  # fmt: skip  # a table
MODULES_THERE = tuple(m for m in MODULES if importlib.util.find_spec(f"test.{m}") is not None)
pytestmark = [
    pytest.mark.full,
    pytest.mark.slow,
    pytest.mark.skipif(not MODULES_THERE, reason="this Python came without its own tests"),
]
_RESULT = re.compile(r"^(test\w+) \((\S+?)\).* \.\.\. (?:.*?)(ok|FAIL|ERROR|skipped.*)$", re.M)


@pytest.mark.parametrize("module", MODULES_THERE)
def test_a_module_of_cpython(module: str, library: Path, tmp_path: Path) -> None:
    tagged = Tagged(library, tmp_path, hint_file(rule("{name}.txt", DP="local")))
    words = (sys.executable, "-m", "unittest", "-v", f"test.{module}")
    found = []
    for env in (None, tagged.environment()):
        done = subprocess.run(
            words, cwd=tagged.root, env=env, capture_output=True, text=True, timeout=1800,
            errors="replace",
        )  # fmt: skip  # a table
        results = {(test, of): result for test, of, result in _RESULT.findall(done.stderr)}
        assert len(results) > 20, done.stderr[-2000:]
        found.append((done.returncode, results))
    assert found[0] == found[1]
