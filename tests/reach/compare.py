"""Share of one recording's bytes in a directory's files that another recording also has.

    compare.py BUNDLE OTHER DIRECTORY

Prints the share in percent, files, bytes, the other's losses, and the files with fewer bytes in it.
Mapped accesses are excluded: the collectors have different bounds for them.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path

from tracehint.schemas.store import read_bundle


def moved(bundle: Path, folder: bytes) -> Counter[tuple[bytes, str]]:
    """Return bytes by name and direction; temporary files of `sort`, named at random, are out."""
    tables = read_bundle(bundle).tables
    paths = {row["open"]: row["path"] or b"" for row in tables["opens"].to_pylist()}
    found = Counter[tuple[bytes, str]]()
    for row in tables["extents"].to_pylist():
        # eBPF records the path as seen outside a program's own root directory
        _, here, name = paths.get(row["open"], b"").partition(folder + b"/")
        if here and row["how"] != "mmap" and not re.fullmatch(rb"sort\w{6}", name):
            found[name, row["op"]] += row["bytes"]
    return found


def main() -> None:
    """Compare the two recordings and print the result."""
    folder = os.fsencode(Path(sys.argv[3]).resolve())
    wanted, got = (moved(Path(name), folder) for name in sys.argv[1:3])
    share = 100 * sum((wanted & got).values()) / sum(wanted.values())
    differ = sorted({key[0] for key in wanted if wanted[key] > got[key]})
    lost = sum(row["count"] for row in read_bundle(Path(sys.argv[2])).tables["losses"].to_pylist())
    names = " ".join(Path(os.fsdecode(path)).name for path in differ)
    print(f"{share:.6g} {len({key[0] for key in wanted})} {sum(wanted.values())} {lost} {names}")


if __name__ == "__main__":
    main()
