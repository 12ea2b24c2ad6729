"""How many of the bytes that one recording has of a directory's files another one has too.

    compare.py BUNDLE OTHER DIRECTORY

Prints the share in percent, files, bytes, losses of the other one, and the files with less there.
What is mapped is left out: of it the collectors know different bounds.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path

from tracehint.schemas.store import read_bundle


def moved(bundle: Path, folder: bytes) -> Counter[tuple[bytes, str]]:
    """Bytes by name and direction; temporary files of `sort` have random ones."""
    tables = read_bundle(bundle).tables
    paths = {row["open"]: row["path"] or b"" for row in tables["opens"].to_pylist()}
    found = Counter[tuple[bytes, str]]()
    for row in tables["extents"].to_pylist():
        # eBPF has the name as it is outside of a root directory of the program's own
        _, here, name = paths.get(row["open"], b"").partition(folder + b"/")
        if here and row["how"] != "mmap" and not re.fullmatch(rb"sort\w{6}", name):
            found[name, row["op"]] += row["bytes"]
    return found


def main() -> None:
    """Compare."""
    folder = os.fsencode(Path(sys.argv[3]).resolve())
    wanted, got = (moved(Path(name), folder) for name in sys.argv[1:3])
    share = 100 * sum((wanted & got).values()) / sum(wanted.values())
    differ = sorted({key[0] for key in wanted if wanted[key] > got[key]})
    lost = sum(row["count"] for row in read_bundle(Path(sys.argv[2])).tables["losses"].to_pylist())
    names = " ".join(Path(os.fsdecode(path)).name for path in differ)
    print(f"{share:.6g} {len({key[0] for key in wanted})} {sum(wanted.values())} {lost} {names}")


if __name__ == "__main__":
    main()
