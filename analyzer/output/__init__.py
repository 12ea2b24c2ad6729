"""Writing and reading an analysis as JSON (the contract) and as Parquet."""
