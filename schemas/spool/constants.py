"""Constants of the spool's layout that are needed without NumPy."""

from __future__ import annotations

LOSSES = {
    0: "lifecycle_records",
    1: "extent_records",
    2: "open_table_full",
    3: "path_cut",
    4: "argv_cut",
    5: "unknown_calls",
    6: "credentials_exec",
    64: "recursion_misses",
    65: "spool_write",
}


VERSION = 4
