"""The format version of trace bundles and the names of their tables, without loading Arrow."""

HINTS_NAME = "hints.json"  # in a bundle: the hint file that `tracehint run` ran with
FORMAT = "tracehint.bundle/1"  # raised when the meaning of something written changes
# schemas/tables.py has their columns
TABLE_NAMES = (
    "processes", "files", "names", "opens", "extents", "metadata_ops", "marks", "losses",
    "attributes", "declared_tasks", "declared_io", "settings",
)  # fmt: skip  # a table
