"""Command lines. shelltext.py: shell text as simple commands; programs.py: what the words of one
command run, behind wrappers, shells and interpreters."""
