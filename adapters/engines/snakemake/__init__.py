"""Snakemake: metadata, summary or graph; and hints as annotations of rules."""
