"""The base class of objects that cannot leave their process."""

from __future__ import annotations

from typing import NoReturn


class StaysInProcess:
    """Raises TypeError when an object is pickled or copied, since it owns memory and threads of this process."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} objects cannot be pickled or copied: they hold a loaded model's memory; "
            "open an Engine in each process, and hand messages or token ids over instead"
        )
