"""Slurm: a script that submits the rules of a Makeflow file, and node-local staging."""
