"""make_tiles.py FOLDER [--columns 4] [--rows 3] [--pixels 240]: overlapping FITS tiles of one sky.

The sky is a fixed formula (a gradient, stars on a lattice), each tile has its
own background level that Montage must find and remove. Needs astropy.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
from astropy.io import fits

Values = npt.NDArray[np.float64]
PIXEL = 2.0 / 3600  # degrees
RA, DEC = 210.0, 54.0
OVERLAP = 0.2  # share of a tile's width


def sky(ra: Values, dec: Values) -> Values:
    """Return the brightness at a position in degrees: smooth background, lattice of stars."""
    stars = np.exp(-(np.sin(ra * 400) ** 2 + np.sin(dec * 400) ** 2) * 40)
    brightness: Values = 100 + 20 * np.sin(ra * 3) * np.cos(dec * 5) + 400 * stars
    return brightness


def tile(column: int, row: int, columns: int, rows: int, pixels: int) -> fits.PrimaryHDU:
    """Return one tile: float32 pixels and a TAN header."""
    step = pixels * PIXEL * (1 - OVERLAP)
    dec = DEC + (row - (rows - 1) / 2) * step
    ra = RA + (column - (columns - 1) / 2) * step / np.cos(np.radians(DEC))
    y, x = np.mgrid[0:pixels, 0:pixels] - (pixels - 1) / 2
    values = sky(ra - x * PIXEL / np.cos(np.radians(dec)), dec + y * PIXEL)
    level = 5.0 * ((column * 7 + row * 3) % 5)
    hdu = fits.PrimaryHDU((values + level + 0.01 * x).astype(np.float32))
    cards = {
        "CTYPE1": "RA---TAN",
        "CTYPE2": "DEC--TAN",
        "CRVAL1": ra,
        "CRVAL2": dec,
        "CRPIX1": (pixels + 1) / 2,
        "CRPIX2": (pixels + 1) / 2,
        "CDELT1": -PIXEL,
        "CDELT2": PIXEL,
        "CROTA2": 0.0,
        "EQUINOX": 2000.0,
    }
    hdu.header.update(cards)
    return hdu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--pixels", type=int, default=240)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for row in range(args.rows):
        for column in range(args.columns):
            name = args.folder / f"tile_{row * args.columns + column:02d}.fits"
            tile(column, row, args.columns, args.rows, args.pixels).writeto(name, overwrite=True)


if __name__ == "__main__":
    main()
