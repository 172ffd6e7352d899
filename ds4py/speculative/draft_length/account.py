"""The account of the time that a request may lose by speculation (docs/dspark.md section 5.6)."""

from __future__ import annotations

SHARE = 0.01
"""The share of the time of plain decoding that may be lost in the long run, so that drafting can be tried again."""
MAX_SAVED, MAX_DEBT = 4.0, 2.0
"""The most that can be saved up, in prices of a try, and the most that can be owed, in cycles that lose everything."""
CHEAP = 1.0
"""The price, in plain steps, up to which the first try is free. A dearer one would be felt in a short answer."""
FIRST_GAP, LAST_GAP = 4, 64
"""The least and the most plain cycles between two tries. A try that shows nothing doubles the gap."""


class Account:
    """The balance, in seconds, of one request's speculation.

    Cycles that are faster than plain decoding pay in. Cycles that are slower, and tries, are paid from it. The first
    try is free where it is cheap. So a request takes at most 1 + SHARE of the time of plain decoding, one try, and
    MAX_DEBT. Times are medians of such cycles and not those of the cycle itself, so that a stall of the machine is
    nobody's loss.
    """

    def __init__(self) -> None:
        self._balance = 0.0
        self._free = True
        self._gap, self._waited = FIRST_GAP, FIRST_GAP

    def allows_try(self, price: float, plain: float) -> bool:
        """Returns whether a draft that does not promise to pay can be tried now.

        `price` is the time that the try adds to a plain step and `plain` the time of a plain step, both in seconds.
        """
        if self._free and price <= CHEAP * plain:
            return True
        return self._waited >= self._gap and self._balance >= price

    def allows(self, stake: float) -> bool:
        """Returns whether a draft that promises to pay is allowed; it is not where earlier promises were broken.

        `stake` is the most that the cycle can lose, in seconds.
        """
        return self._balance >= -MAX_DEBT * stake

    def plain(self, seconds: float) -> None:
        """Books a plain cycle of so many seconds."""
        self._waited += 1
        self._balance += SHARE * seconds

    def drafted(self, plain: float, taken: float, price: float, *, tried: bool) -> None:
        """Books a cycle with a draft.

        Args:
            plain: seconds in which plain decoding emits the cycle's tokens.
            taken: seconds of the cycle.
            price: seconds that a try adds to a plain step.
            tried: whether the cycle was not expected to pay.
        """
        won = plain - taken
        if tried and self._free:
            self._free, won = False, max(won, 0.0)
        balance = self._balance + SHARE * plain + won
        self._balance = min(balance, max(self._balance, MAX_SAVED * price))
        self._gap = min(2 * self._gap, LAST_GAP) if tried else FIRST_GAP
        self._waited = 0
