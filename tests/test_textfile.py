"""Small files that others wrote: limits and what is said, the same for all kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracehint.errors import InputError
from tracehint.hintgen.text.textfile import TextFile

KIND = TextFile(kind="A list", limit="small-bytes", check="Check --list.", remedy="Write it anew.")


def test_toml_and_json_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('name = "é"\n', encoding="utf-8")
    (tmp_path / "a.json").write_text("[1]")
    assert KIND.toml(tmp_path / "a.toml") == {"name": "é"}
    assert KIND.json(tmp_path / "a.json") == [1]


@pytest.mark.parametrize("raw", [b"\xff", b"[" * 100_000, b"a = ", b"{", b"a = [" + b"[" * 100_000])
def test_what_cannot_be_parsed_is_said(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "bad"
    path.write_bytes(raw)
    for read, form in ((KIND.toml, "TOML"), (KIND.json, "JSON")):
        with pytest.raises(InputError, match=f"bad is not {form}") as caught:
            read(path)
        assert caught.value.remedy == "Write it anew."


def test_no_more_than_the_limit_is_read_also_where_no_size_is_known(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_text(" " * (4 << 20) + "1")
    for large in (path, Path("/dev/zero")):
        with pytest.raises(InputError, match="more than 4,194,304 bytes"):
            KIND.json(large)
    with pytest.raises(InputError, match="cannot read"):
        KIND.json(tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot read"):
        KIND.toml(tmp_path)
