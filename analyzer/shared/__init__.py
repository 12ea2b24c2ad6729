"""One analysis for all commands that ask for it: kept in the user's cache directory."""
