"""Match paths against the rules of a hint file: winning rule, hint values, and reason."""
