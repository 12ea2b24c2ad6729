"""Recording with a library in every program: without root, nearly free, dynamic programs only."""

from tracehint.collectors.preload.collector import PreloadCollector

__all__ = ["PreloadCollector"]
