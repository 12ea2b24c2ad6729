"""Predicted against measured, by type of task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.columns import codes, floats
from tracehint.errors import InputError

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.predict.model import Workload
    from tracehint.analyzer.predict.prediction import Prediction


def validate(work: Workload, prediction: Prediction, measured: Analysis) -> dict[str, Any]:
    """Seconds of the whole run, and of each type from its first start to its last end.

    `error` is (predicted - measured) / measured; None where nothing was measured. Types that only
    one side has are left out of `types` and named in `only`. Raises InputError.
    """
    spans, total = _spans(measured)
    rows = prediction.outcome.types
    own = {work.type_names[i]: float(rows[i, 1] - rows[i, 0]) for i in range(len(rows))}
    both = [name for name in own if name in spans]
    return {
        "name": prediction.configuration.name,
        "measured_seconds": total,
        "predicted_seconds": prediction.seconds,
        "error": _error(prediction.seconds, total),
        "inside": prediction.low <= total <= prediction.high,
        "types": [
            {
                "type": name,
                "measured_seconds": spans[name],
                "predicted_seconds": own[name],
                "error": _error(own[name], spans[name]),
            }
            for name in both
        ],
        "only": sorted({*own, *spans} - set(both)),
    }


def _spans(run: Analysis) -> tuple[dict[str, float], float]:
    """(seconds by type, of all) from the first start to the last end of tasks with times."""
    import pyarrow.compute as pc

    work = run.tasks.filter(pc.invert(pc.fill_null(run.tasks.column("engine"), False)))
    start, end = floats(work, "start_s"), floats(work, "end_s")
    timed = ~(np.isnan(start) | np.isnan(end))
    if not timed.any():
        raise InputError(
            "the measured run has no times of tasks", "Give --validate a recorded run."
        )
    kind = codes(work, "type")[timed]
    names = work.column("type").combine_chunks().dictionary_encode().dictionary.to_pylist()
    start, end = start[timed], end[timed]
    spans = {
        names[code]: float(end[kind == code].max() - start[kind == code].min())
        for code in np.unique(kind[kind >= 0])
    }
    return spans, float(end.max() - start.min())


def _error(predicted: float, measured: float) -> float | None:
    return predicted / measured - 1 if measured > 0 else None
