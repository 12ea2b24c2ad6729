"""One module per command: parse options, call, print. Names with _ hold shared options."""
