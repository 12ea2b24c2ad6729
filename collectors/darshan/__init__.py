"""Darshan logs, one per process or MPI job, as one run."""
