"""Rules learned from small runs."""

from __future__ import annotations

from tests.support.flows import Flowing
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.learn.rules import LearnOptions, learn
from tracehint.hintgen.learn.safety import NO_LIMITS, Limits

BIG = 8 << 20


def learned(run: Flowing, limits: Limits = NO_LIMITS, **options: bool) -> HintFile:
    """Learn rules from the run; `options` of LearnOptions."""
    return learn([run.analysis()], LearnOptions(limits=limits, **options))


def mosaic(tiles: int = 5, size: int = BIG) -> Flowing:
    """Return a run: proj x tiles -> fit x tiles -> one add; one header for all proj."""
    run = Flowing()
    for k in range(tiles):
        proj, fit = run.task("proj"), run.task("fit")
        run.read(proj, "region.hdr", size)
        run.read(proj, f"in/tile_{k}.fits", size)
        run.write(proj, f"out/p_{k:03d}.fits", size)
        run.read(fit, f"out/p_{k:03d}.fits", size)
        run.write(fit, f"out/f_{k}.txt", size)
    add = run.task("add")
    for k in range(tiles):
        run.read(add, f"out/f_{k}.txt", size)
    run.write(add, "out/mosaic.fits", size)
    return run
