"""Which task handed which bytes of which file to which task (docs/reference/flow.md)."""
