"""Darshan: logs that a site keeps anyway as one run, or a recording with its runtime.

collector     record by the site's runtime
importer      find and read logs, and make one bundle of them
records       the records of a log's modules
assembly      the facts of all logs as tables
"""

from tracehint.collectors.darshan.collector import DarshanCollector

__all__ = ["DarshanCollector"]
