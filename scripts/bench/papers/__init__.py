"""Published tables and what `predict` says of the same runs: docs/reference/published.md."""
