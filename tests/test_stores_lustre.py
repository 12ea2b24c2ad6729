"""Lustre: layouts passed to its tool, the tool's output, and the content of a journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.store_tools import BLOCK, COPIES, SCATTER, places, tool_store
from tracehint.adapters.stores.base import Setting
from tracehint.adapters.stores.lustre import layout_words, lustre
from tracehint.adapters.stores.places import Places
from tracehint.errors import TracehintError, UsageError


def test_small_files_lie_on_the_metadata_server_where_the_map_says_so(tmp_path: Path) -> None:
    store = tool_store("lustre", places(tmp_path, "lustre", "small = 1048576\n"))
    [setting], _ = store.translate(SCATTER, "directory")
    wanted = "-E 1048576 -L mdt -E 3145728 -c 1 -S 3145728 -E -1 -c -1 -S 3145728 P"
    wanted = f"lfs setstripe {wanted}"
    assert store.argv(setting, "P") == wanted.split()
    [setting], _ = store.translate(BLOCK, "directory")
    wanted = "lfs setstripe -E 1048576 -L mdt -E -1 -S 131072 P"
    assert store.argv(setting, "P") == wanted.split()
    [setting], _ = store.translate(COPIES, "directory")
    assert "mdt" not in store.argv(setting, "P"), "mirrors have no part there"
    [setting], _ = store.translate(BLOCK, "file")
    assert "mdt" not in store.argv(setting, "P")


PLAIN = """\
lmm_stripe_count:  4
lmm_stripe_size:   1048576
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: 2
lmm_pool:          flash
lmm_objects:
      - l_ost_idx: 2
        l_fid:     0x100020000:0x2:0x0
      - l_ost_idx: 0
        l_fid:     0x100000000:0x2:0x0
"""
COMPOSITE = """\
  lcm_layout_gen:    0
  lcm_mirror_count:  1
  lcm_entry_count:   3
  component0:
    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 0
    lcme_extent.e_end:   1048576
    sub_layout:
      lmm_stripe_count:  0
      lmm_stripe_size:   1048576
      lmm_pattern:       mdt
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
  component1:
    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 1048576
    lcme_extent.e_end:   16777216
    sub_layout:
      lmm_stripe_count:  1
      lmm_stripe_size:   4194304
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
  component2:
    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 16777216
    lcme_extent.e_end:   EOF
    sub_layout:
      lmm_stripe_count:  -1
      lmm_stripe_size:   4194304
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
"""
MIRRORED = """\
  lcm_layout_gen:    4
  lcm_mirror_count:  2
  lcm_entry_count:   2
  component0:
    lcme_id:             65537
    lcme_mirror_id:      1
    lcme_flags:          init
    lcme_extent.e_start: 0
    lcme_extent.e_end:   EOF
    sub_layout:
      lmm_stripe_count:  1
      lmm_stripe_size:   4194304
      lmm_pattern:       raid0
      lmm_objects:
      - l_ost_idx: 0
        l_fid:     0x100000000:0x3:0x0
  component1:
    lcme_id:             131074
    lcme_mirror_id:      2
    lcme_flags:          init,stale
    lcme_extent.e_start: 0
    lcme_extent.e_end:   EOF
    sub_layout:
      lmm_stripe_count:  2
      lmm_stripe_size:   4194304
      lmm_pattern:       raid0
"""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (PLAIN, {"count": "4", "size": "1048576", "pool": "flash"}),
        (COMPOSITE, {"count": "-1", "size": "4194304", "mdt": "1048576", "narrow": "16777216"}),
        (MIRRORED, {"count": "1", "size": "4194304", "mirrors": "2"}),
        ("", {}),
        ("lmm_stripe_count: $(id)\nlmm_stripe_size: -3\nlmm_pool: a b\n", {}),
        ("lmm_pool: " + "x" * 100, {}),
        ("\x00\xff: : :\n" * 1000, {}),
    ],
)
def test_a_layout_is_read_from_what_getstripe_prints(answer: str, words: dict[str, str]) -> None:
    assert layout_words(answer) == words


def test_what_a_journal_says_is_checked_like_a_hint() -> None:
    store = lustre(Places())
    for value in (
        b"pool=$(id)",
        b"x=1",
        b"count=1 count=2",
        b"count",
        b"",
        b"size=1\n",
        b"pool=-x",
    ):
        with pytest.raises(TracehintError):
            store.argv(Setting(key="lustre:layout", value=value, hint=""), "P")
    with pytest.raises(UsageError):
        store.check_key("user.DP", allow_trusted=True)
