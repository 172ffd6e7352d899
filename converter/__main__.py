"""`python -m ds4py.converter` is the same as `deepseek4-quantize`."""

import sys

from .cli import main

sys.exit(main())
