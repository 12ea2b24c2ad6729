"""Task identity: which processes of a run make up which task (docs/reference/tasks.md)."""

from tracehint.analyzer.tasks.model import Segmentation
from tracehint.analyzer.tasks.segmentation import segment_tasks
from tracehint.analyzer.tasks.waiting import with_waiting

__all__ = ["Segmentation", "segment_tasks", "with_waiting"]
