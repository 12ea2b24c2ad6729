"""Published tables and predictions of the same runs: docs/reference/published.md."""
