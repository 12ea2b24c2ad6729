"""The bundled workflows and generators of runs."""
