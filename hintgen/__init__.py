"""Applications of an analysis: rules (learn, match, hints), plan, lint, report, compare, export.

Modules in this folder are shared by several of them: inputs (a bundle or an analysis), query (the
analysis as SQL tables), file_users (writers and readers of files), gain (the gain of a remedy).
"""
