"""Metadata of a run over several sites, predicted for each strategy of registries."""
