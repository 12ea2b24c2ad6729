"""The spool's layout: the C headers and schemas/spool/layout.py must agree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.constants import LOSSES, VERSION
from tracehint.schemas.tables import EXTENT_HOW, EXTENT_OPS, LOSS_KINDS, NAME_OPS

HEADER = Path(lay.__file__).resolve().parent.parent / "collectors" / "ebpf" / "spool.h"
if not HEADER.exists():  # imported through the link src/tracehint/schemas
    HEADER = Path(__file__).parent.parent / "collectors" / "ebpf" / "spool.h"


@pytest.fixture(scope="module")
def c_layout(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Map `struct.field` to its offset and `struct` to its size, as compiled in C."""
    lines = [
        "#include <stddef.h>",
        "#include <stdio.h>",
        f'#include "{HEADER}"',
        "int main(void)",
        "{",
    ]
    for name, dtype in lay.STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        lines += [
            f'printf("{name}.{field} %zu\\n", offsetof(struct {name}, {field}));'
            for field in dtype.names or ()
        ]
    lines += ["return 0;", "}"]
    folder = tmp_path_factory.mktemp("layout")
    source = folder / "layout.c"
    source.write_text("\n".join(lines))
    subprocess.run(["cc", "-Wall", "-Werror", "-o", folder / "layout", source], check=True)
    out = subprocess.run([folder / "layout"], capture_output=True, text=True, check=True).stdout
    return {name: int(value) for name, value in (line.split() for line in out.splitlines())}


@pytest.mark.parametrize("name", lay.STRUCTS)
def test_offsets_and_sizes_agree(c_layout: dict[str, int], name: str) -> None:
    dtype = lay.STRUCTS[name]
    assert dtype.itemsize == c_layout[name]
    for field in dtype.names or ():
        assert dtype.fields is not None
        assert dtype.fields[field][1] == c_layout[f"{name}.{field}"], field
    members = _members(name)
    assert list(dtype.names or ()) == members


def test_versions_agree() -> None:
    assert re.findall(r"#define TH_SPOOL_VERSION (\d+)", _text()) == [str(VERSION)]


def _text() -> str:
    return HEADER.with_name("layout.h").read_text() + HEADER.read_text()


def _members(struct: str) -> list[str]:
    text = _text()
    body = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
    assert body
    code = re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL)
    return re.findall(r"(\w+)(?:\[\w+\])?;", code)


def _enum(name: str) -> list[str]:
    body = re.search(rf"^enum {name} \{{(.*?)\}};", _text(), re.MULTILINE | re.DOTALL)
    assert body
    return re.findall(r"\bTH_\w+", re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL))


def test_enumerations_agree() -> None:
    assert len(_enum("th_op")) == len(lay.OPS)
    assert len(_enum("th_how")) == len(lay.HOWS)
    assert len(_enum("th_name_op")) == len(lay.NAME_OPS)
    assert len(_enum("th_meta")) - 1 == lay.META
    assert len(_enum("th_loss")) - 1 == lay.LOST
    assert f"#define TH_UNKNOWN_URING {lay.UNKNOWN_URING} " in _text()
    assert set(lay.OPS) <= set(EXTENT_OPS)
    assert set(lay.HOWS) <= set(EXTENT_HOW)
    assert set(lay.NAME_OPS) - {"truncate"} <= set(NAME_OPS)
    assert set(LOSSES.values()) <= set(LOSS_KINDS)
