"""Hints at creation: rules compiled for the preload library, and what it did with them."""
