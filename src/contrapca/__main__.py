"""`python -m contrapca` is the command `contrapca`."""

import sys

from .cli import main

sys.exit(main())
