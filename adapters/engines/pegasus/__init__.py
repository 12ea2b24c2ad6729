"""Pegasus: abstract workflow and kickstart records, and hints in the workflow."""
