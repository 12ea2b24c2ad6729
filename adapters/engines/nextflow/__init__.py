"""Nextflow: its trace file and log, and a configuration with hints."""
