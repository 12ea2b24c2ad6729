"""Learning rules from runs: facts of files, templates that fit, which rules are held back."""
