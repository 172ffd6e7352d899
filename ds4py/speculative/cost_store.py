"""The file that keeps costs from one start to the next, in the user's cache directory."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import tempfile
from pathlib import Path

import platformdirs

from ds4py.errors import FormatError
from ds4py.speculative.costs import Costs

FORMAT = 1
"""The version of the file's contents."""

WORTH_KEEPING = 16
"""The number of new steps from which on the file is written."""

log = logging.getLogger(__name__)


class CostStore:
    """A file of costs. `identity` is what the costs depend on: model, drafter, device, threads and build."""

    def __init__(self, identity: dict[str, str | int]) -> None:
        self._identity = {**identity, "format": FORMAT, "processor": processor()}
        digest = hashlib.sha256(json.dumps(self._identity, sort_keys=True).encode()).hexdigest()
        self.path = Path(platformdirs.user_cache_dir("ds4py", appauthor=False)) / "costs" / f"{digest[:32]}.json"

    def load(self) -> Costs:
        """Returns the costs that were kept; empty ones where the file is missing, damaged or of another identity."""
        try:
            values = json.loads(self.path.read_text(encoding="utf-8"))
            if values["identity"] == self._identity:
                return Costs.from_dict(values["costs"])
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, FormatError) as error:
            log.info("costs in %s are of no use: %s", self.path, error)
        return Costs()

    def keep(self, costs: Costs) -> None:
        """Writes the costs where enough steps are new, whole or not at all.

        A file that cannot be written is logged only: the costs are then learned again.
        """
        if costs.steps < WORTH_KEEPING:
            return
        text = json.dumps({"identity": self._identity, "costs": costs.as_dict()}, indent=1)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._write(text)
        except OSError as error:
            log.info("costs are not kept: %s", error)

    def _write(self, text: str) -> None:
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.stem, suffix=".part")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(name, self.path)
        except OSError:
            os.unlink(name)
            raise


def processor() -> str:
    """Returns the processor's name, as far as the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = (line.split(":", 1)[1].strip() for line in file if line.startswith(("model name", "Model")))
            return next(names, platform.machine())
    except OSError:
        return platform.processor() or platform.machine()
