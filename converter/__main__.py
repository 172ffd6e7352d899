"""Runs `deepseek4-quantize` as `python -m ds4py.converter`."""

import sys

from .cli import main

sys.exit(main())
