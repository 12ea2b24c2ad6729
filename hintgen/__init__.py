"""What an analysis is good for: rules (learn, match, hints), plan, lint, report, compare, export.

Here is what several of them read: inputs (a bundle or an analysis), query (the analysis as SQL
tables), file_users (who made and read a file), gain (the gain of a remedy).
"""
