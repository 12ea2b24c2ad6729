"""What hints save in seconds on a cluster, by pattern, in a sentence: analyze, profile, report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehint.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile


def saved_by_pattern(analysis: Analysis, cluster: str, rules: HintFile | None = None) -> str:
    """Simulated, the pattern that saves most first; in words why there is nothing to say.

    Raises InputError for a cluster that cannot be.
    """
    from tracehint.analyzer.predict.cluster_file import read_cluster
    from tracehint.hintgen.learn.rules import learn
    from tracehint.hintgen.simulated import simulate_groups
    from tracehint.hintgen.summary.labelled import Labelled

    where = read_cluster(cluster)
    labelled = Labelled(analysis)
    number = {name: code for code, name in enumerate(labelled.patterns)}
    groups = {
        row["pattern"]: labelled.file[labelled.pattern == number[row["pattern"]]].tolist()
        for row in labelled.mix()
        if row["saves"] > 0 or row["waits"] > 0
    }
    if not groups:
        return ""
    try:
        found = simulate_groups(analysis, where, rules or learn([analysis]), groups)
    except (InputError, MissingDependencyError) as error:
        return f"No savings in seconds: {error}"
    return f"Hints in seconds: {found.text}." if found else ""
