"""A drafter that proposes what it is told, for tests and measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ds4py.speculative.draft import Draft, Ids
from ds4py.speculative.request import DraftRequest
from ds4py.speculative.target import TargetSession

Script = Callable[[Ids], "Draft | Sequence[int] | Ids | None"]


class ScriptedDrafter:
    """Proposes what `script` returns for the tokens so far (int32 [n], the anchor last): ids, or a Draft with its q."""

    name = "scripted"

    def __init__(self, script: Script) -> None:
        self._script = script

    def propose(self, session: TargetSession, request: DraftRequest, draft_length: int) -> Draft | None:
        """Returns the script's answer; q is 1 at each proposal where the script gives ids alone."""
        found = self._script(session.history())
        return found if found is None or isinstance(found, Draft) else Draft.point_mass(found)
