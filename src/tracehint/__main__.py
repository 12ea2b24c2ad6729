"""`python -m tracehint`."""

import sys

from tracehint.cli import main

sys.exit(main())
