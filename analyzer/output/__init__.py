"""An analysis as JSON (the contract) and as Parquet, out and in."""
