"""The width that measured costs and the request's own acceptance make the fastest."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py.speculative.draft_length.account import Account
from ds4py.speculative.draft_length.base import Offer, Width
from ds4py.speculative.expected import worthwhile
from ds4py.speculative.stats import Cycle

MEASURE_AGAIN = 32
"""Drafts after which one is verified in the width that was measured longest ago: a wrong cost would stay for ever."""
LONGEST_REST = 15
"""Plain cycles before everyone is asked again: a text begins to repeat itself from one token to the next."""


class Auto(Width):
    """Most expected tokens a second, E(k) / (D + V(k)), over all widths; 0 where that is plain decoding.

    Whether drafting is worth its D is decided before, from the cycles before. Where it is not, a try now and then finds
    out whether that has changed, within an `Account` of what may be lost. Inside a block that was drafted, proposals
    join from left to right as `worthwhile` finds them. While the costs of some widths are unknown, cycles take these.
    """

    def __init__(self) -> None:
        self._account = Account()
        self._offer: Offer | None = None
        self._try = False
        self._rest = 0
        self._drafted = 0
        self._again = 0  # the width of this cycle where its cost is measured again

    def start(self) -> Auto:
        """A new account."""
        return Auto()

    @property
    def trying(self) -> bool:
        """Whether the cycle at hand was not expected to pay, and is there to find out or to learn a cost."""
        return self._try

    @property
    def rest(self) -> int:
        """The longer, the longer nothing has paid."""
        return self._rest

    def choose(self, offer: Offer) -> int:
        """The best width where drafting promises to pay, all there are where `admit` will be asked; else 0 or a try."""
        width = self._chosen(offer)
        self._rest = 0 if width or offer.unknown is not None else min(2 * self._rest + 1, LONGEST_REST)
        return width

    def _chosen(self, offer: Offer) -> int:
        self._offer, self._try, self._again = offer, False, 0
        if (curve := offer.settled) is None:
            self._try = bool(offer.unknown)
            return offer.unknown or 0
        best, rate = offer.best
        pays = best > 0 and rate * curve.plain > 1
        stake, price = curve.beyond_plain(offer.most), curve.beyond_plain(1)
        if not (self._account.allows(stake) if pays else self._account.allows_try(price, curve.plain)):
            return 0
        self._try = not pays
        self._drafted += 1
        if self._drafted % MEASURE_AGAIN == 0:
            self._again = min(offer.oldest, offer.most)
        return offer.most if offer.confident else self._again or max(best, 1)

    def admit(self, offer: Offer, confidence: Sequence[float]) -> int:
        """What is worth its time, at the rate that drafting or plain decoding has; of a try one, to learn from."""
        if (curve := offer.settled) is None:
            return len(confidence)
        if self._again:
            return min(self._again, len(confidence))
        rate = max(offer.best[1], 1 / curve.plain)
        return max(worthwhile(confidence, offer.expected, curve.verify, rate, len(confidence)), int(self._try))

    def observe(self, cycle: Cycle) -> None:
        """Books the cycle; those that learn costs are free."""
        if self._offer is None or (curve := self._offer.settled) is None:
            return
        plain = curve.plain * cycle.emitted
        if cycle.draft_seconds or cycle.width:
            taken = (curve.draft if cycle.draft_seconds else 0.0) + curve.verify[cycle.width]
            self._account.drafted(plain, taken, curve.beyond_plain(1), tried=self._try)
        else:
            self._account.plain(plain)
