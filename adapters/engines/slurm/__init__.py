"""Slurm: a script that submits the rules of a Makeflow file, with what it stages on nodes."""
