"""Command lines. shelltext.py: shell text to simple commands; programs.py: the program that a
command runs, behind wrappers, shells and interpreters."""
