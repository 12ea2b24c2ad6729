"""Checks of what works on new machines: `make reach`."""
