"""The lint rules, a module per topic; `registry.py` one folder up lists each rule."""
