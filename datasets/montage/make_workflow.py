"""make_workflow.py FOLDER [--columns 4] [--rows 3] [--pixels 240]: Montage as a Makeflow file.

Writes region.hdr, the image lists, statfile.tbl and montage.makeflow for the
tiles that make_tiles.py puts into FOLDER/archive. The rules declare what the
Montage manual says each program needs, including area files that some
programs never open: the tests compare that with what really happens.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from pathlib import Path

PIXEL = 2.0 / 3600  # degrees; as in make_tiles.py
RA, DEC = 210.0, 54.0
OVERLAP = 0.2


def neighbours(columns: int, rows: int) -> list[tuple[int, int]]:
    """Return the pairs of tiles that overlap: horizontal, vertical and diagonal neighbours."""
    cells = [(r, c) for r in range(rows) for c in range(columns)]
    pairs = []
    for a, (r1, c1) in enumerate(cells):
        for b, (r2, c2) in enumerate(cells):
            if a < b and abs(r1 - r2) <= 1 and abs(c1 - c2) <= 1:
                pairs.append((a, b))
    return pairs


def header(columns: int, rows: int, pixels: int) -> str:
    """Return the template header of the mosaic."""
    step = pixels * (1 - OVERLAP)
    wide = math.ceil(columns * step + pixels * OVERLAP) + 40
    high = math.ceil(rows * step + pixels * OVERLAP) + 40
    cards = {
        "SIMPLE": "T", "BITPIX": -64, "NAXIS": 2, "NAXIS1": wide, "NAXIS2": high,
        "CTYPE1": "'RA---TAN'", "CTYPE2": "'DEC--TAN'", "EQUINOX": 2000, "CRVAL1": RA,
        "CRVAL2": DEC, "CRPIX1": wide / 2 + 0.5, "CRPIX2": high / 2 + 0.5,
        "CDELT1": -PIXEL, "CDELT2": PIXEL, "CROTA2": 0.0,
    }  # fmt: skip  # a table
    return "".join(f"{key:8}= {value}\n" for key, value in cards.items()) + "END\n"


def rule(targets: Iterable[str], sources: Iterable[str], command: str) -> str:
    return f"{' '.join(targets)}: {' '.join(sources)}\n\t{command}\n\n"


def with_area(names: Iterable[str]) -> list[str]:
    return [part for n in names for part in (n, n.replace(".fits", "_area.fits"))]


def table(header_line: str, rows: Iterable[str]) -> str:
    """Return an IPAC table: the header line, a type line of the same shape, the rows."""
    types = "".join("|" if ch == "|" else " " for ch in header_line)
    for name, kind in (("cntr1", "int"), ("cntr2", "int"), ("stat", "char"), ("fname", "char")):
        at = header_line.find(name)
        if at >= 0:
            types = types[:at] + kind + types[at + len(kind) :]
    return "\n".join([header_line, types, *rows]) + "\n"


def workflow(count: int, pairs: list[tuple[int, int]]) -> str:
    """Return all rules, in the order of the stages."""
    tiles = [f"{k:02d}" for k in range(count)]
    proj = [f"proj/p_{t}.fits" for t in tiles]
    corr = [f"corr/c_{t}.fits" for t in tiles]
    return "".join(
        [*projected(tiles, proj), *fitted(pairs, proj), *corrected(proj, corr), *mosaic(corr)]
    )


def projected(tiles: list[str], proj: list[str]) -> list[str]:
    """Return rules that copy the tiles and project them onto the region."""
    out = []
    for t in tiles:
        raw = f"raw/tile_{t}.fits"
        out.append(rule([raw], [f"archive/tile_{t}.fits"], f"cp archive/tile_{t}.fits {raw}"))
    for t, p in zip(tiles, proj, strict=True):
        raw = f"raw/tile_{t}.fits"
        out.append(rule(with_area([p]), [raw, "region.hdr"], f"mProject {raw} {p} region.hdr"))
    sources = ["pimages.lst", *with_area(proj)]
    out.append(rule(["pimages.tbl"], sources, "mImgtbl -t pimages.lst proj pimages.tbl"))
    return out


def fitted(pairs: list[tuple[int, int]], proj: list[str]) -> list[str]:
    """Return rules that fit planes to differences of overlapping tiles and derive corrections."""
    diffs = [f"diff/d_{a:02d}_{b:02d}.fits" for a, b in pairs]
    fits = [f"fit/f_{a:02d}_{b:02d}.txt" for a, b in pairs]
    out = [rule(["diffs.tbl"], ["pimages.tbl"], "mOverlaps pimages.tbl diffs.tbl")]
    for (a, b), d in zip(pairs, diffs, strict=True):
        sources = with_area([proj[a], proj[b]])
        command = f"mDiff {proj[a]} {proj[b]} {d} region.hdr"
        out.append(rule(with_area([d]), [*sources, "region.hdr", "diffs.tbl"], command))
    for d, f in zip(diffs, fits, strict=True):
        out.append(rule([f], with_area([d]), f"mFitplane -s {f} {d}"))
    out.append(rule(["fits.tbl"], ["statfile.tbl", *fits], "mConcatFit statfile.tbl fits.tbl fit"))
    command = "mBgModel pimages.tbl fits.tbl corrections.tbl"
    out.append(rule(["corrections.tbl"], ["pimages.tbl", "fits.tbl"], command))
    return out


def corrected(proj: list[str], corr: list[str]) -> list[str]:
    """Return rules that apply the corrections to the projected tiles."""
    out = []
    for p, c in zip(proj, corr, strict=True):
        # table mode looks the image up by its exact name in the table
        names = f"{p.removeprefix('proj/')} ../{c} ../pimages.tbl ../corrections.tbl"
        sources = [*with_area([p]), "pimages.tbl", "corrections.tbl"]
        out.append(rule(with_area([c]), sources, f"(cd proj && mBackground -t {names})"))
    return out


def mosaic(corr: list[str]) -> list[str]:
    """Return rules for one image of all tiles, and for pictures of it."""
    images = with_area(corr)
    add, shrink = "mAdd -p corr cimages.tbl region.hdr", "mShrink mosaic.fits small.fits 2"
    view = "mViewer -gray small.fits 0s max gaussian-log -out mosaic.png"
    return [
        rule(["cimages.tbl"], ["cimages.lst", *images], "mImgtbl -t cimages.lst corr cimages.tbl"),
        rule(
            with_area(["mosaic.fits"]), ["cimages.tbl", "region.hdr", *images], f"{add} mosaic.fits"
        ),
        rule(["small.fits"], ["mosaic.fits"], shrink),
        rule(["mosaic.png"], ["small.fits"], view),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--pixels", type=int, default=240)
    args = parser.parse_args()
    folder, count = args.folder, args.columns * args.rows
    pairs = neighbours(args.columns, args.rows)
    for name in ("raw", "proj", "diff", "fit", "corr"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "region.hdr").write_text(header(args.columns, args.rows, args.pixels))
    for kind in "pc":
        names = [f"  {kind}_{k:02d}.fits" for k in range(count)]
        (folder / f"{kind}images.lst").write_text(table("| fname          |", names))
    stats = [f"  {a:5d}   {b:5d}   f_{a:02d}_{b:02d}.txt" for a, b in pairs]
    (folder / "statfile.tbl").write_text(table("| cntr1 | cntr2 | stat           |", stats))
    (folder / "montage.makeflow").write_text(workflow(count, pairs))


if __name__ == "__main__":
    main()
