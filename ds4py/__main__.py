"""Makes `python -m ds4py` the same as the command `ds4py`."""

import sys

from ds4py.cli import main

sys.exit(main())
