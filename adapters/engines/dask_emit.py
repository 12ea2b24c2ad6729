"""Dask: a module that starts each task of a plan on the workers of its part, and its data."""

from __future__ import annotations

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.part_module import module_of
from tracehint.adapters.engines.planned import require_plan
from tracehint.hintgen.hints.model import HintFile


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """The module and its data."""
    return module_of("dask", request, require_plan(hints, "dask"))
