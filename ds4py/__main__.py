"""`python -m ds4py` is the same as `ds4py`."""

import sys

from ds4py.cli import main

sys.exit(main())
