"""Real programs, traced twice at once: by the product, and by strace as the truth."""
