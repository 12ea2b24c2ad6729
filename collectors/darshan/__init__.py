"""Darshan: a site's existing logs as one run, or a recording with its runtime.

collector     record with the site's runtime
importer      find and read logs, and write them as one bundle
records       the records of a log's modules
assembly      the facts of all logs as tables
"""

from tracehint.collectors.darshan.collector import DarshanCollector

__all__ = ["DarshanCollector"]
