"""Task identity: which processes of a run make up which task (docs/reference/tasks.md)."""

from tracehint.analyzer.tasks.cut import cut_tasks
from tracehint.analyzer.tasks.model import TaskCut

__all__ = ["TaskCut", "cut_tasks"]
