"""The policy `auto`: the draft length that measured costs and the request's own acceptance make the fastest."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py.speculative.cost_model import admitted_proposals
from ds4py.speculative.draft_length.account import Account
from ds4py.speculative.draft_length.base import DraftEstimate, DraftLengthPolicy
from ds4py.speculative.stats import Cycle

MEASURE_AGAIN = 32
"""The number of drafts after which one takes the draft length that was measured longest ago, so that a wrong cost does
not stay."""
LONGEST_REST = 15
"""The most plain cycles before everyone is asked again, because a text can begin to repeat itself at any token."""


class Auto(DraftLengthPolicy):
    """Maximises expected tokens a second, E(k) / (D + V(k)), over all draft lengths (D57); 0 is plain decoding.

    Whether a draft is worth its time D is decided before it is made, from earlier cycles. Where it is not, a try now
    and then finds out whether that has changed, within an `Account` of what may be lost. After a draft, proposals are
    admitted from left to right by `admitted_proposals` (D60). While the costs of some draft lengths are unknown, cycles
    take those.
    """

    def __init__(self) -> None:
        self._account = Account()
        self._estimate: DraftEstimate | None = None
        self._try = False
        self._rest = 0
        self._drafted = 0
        self._again = 0  # the draft length of this cycle where its cost is measured again

    def start(self) -> Auto:
        """Returns a policy with a new account."""
        return Auto()

    @property
    def trying(self) -> bool:
        """Whether the cycle is not expected to pay, and is there to learn the acceptance or a cost."""
        return self._try

    @property
    def rest(self) -> int:
        """The number of plain cycles before the next question. It grows while drafting does not pay."""
        return self._rest

    def choose(self, estimate: DraftEstimate) -> int:
        """Returns the best draft length where drafting promises to pay (D58), and else 0 or that of a try.

        Where the drafter has confidences it returns the whole block, which `admit` shortens.
        """
        draft_length = self._chosen(estimate)
        resting = draft_length == 0 and estimate.unmeasured is None
        self._rest = min(2 * self._rest + 1, LONGEST_REST) if resting else 0
        return draft_length

    def _chosen(self, estimate: DraftEstimate) -> int:
        self._estimate, self._try, self._again = estimate, False, 0
        if (curve := estimate.settled_curve) is None:
            self._try = bool(estimate.unmeasured)
            return estimate.unmeasured or 0
        best, rate = estimate.best
        pays = best > 0 and rate * curve.plain > 1
        stake, price = curve.beyond_plain(estimate.max_draft_length), curve.beyond_plain(1)
        if not (self._account.allows(stake) if pays else self._account.allows_try(price, curve.plain)):
            return 0
        self._try = not pays
        self._drafted += 1
        if self._drafted % MEASURE_AGAIN == 0:
            self._again = min(estimate.oldest, estimate.max_draft_length)
        return estimate.max_draft_length if estimate.has_confidence else self._again or max(best, 1)

    def admit(self, estimate: DraftEstimate, confidence: Sequence[float]) -> int:
        """Returns how many proposals are worth their time at the present rate (D60); at least one in a try."""
        if (curve := estimate.settled_curve) is None:
            return len(confidence)
        if self._again:
            return min(self._again, len(confidence))
        rate = max(estimate.best[1], 1 / curve.plain)
        admitted = admitted_proposals(confidence, estimate.survival, curve.verify, rate, len(confidence))
        return max(admitted, int(self._try))

    def observe(self, cycle: Cycle) -> None:
        """Books the cycle on the account; cycles that measure unknown costs are not booked."""
        if self._estimate is None or (curve := self._estimate.settled_curve) is None:
            return
        plain = curve.plain * cycle.emitted
        if cycle.draft_seconds or cycle.draft_length:
            taken = (curve.draft if cycle.draft_seconds else 0.0) + curve.verify[cycle.draft_length]
            self._account.drafted(plain, taken, curve.beyond_plain(1), tried=self._try)
        else:
            self._account.plain(plain)
