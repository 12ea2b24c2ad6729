"""Metadata of a run over several sites: what each strategy of registries would bring."""
