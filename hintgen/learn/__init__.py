"""Learn hint rules from runs: facts of files, name templates, and which rules are held back."""
