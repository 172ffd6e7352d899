"""The account of the time that speculation may lose."""

from __future__ import annotations

SHARE = 0.01
"""Of the time of plain decoding: may be lost in the long run, so that drafting can be tried again."""
MOST, DEBT = 4.0, 2.0
"""What can be saved up, in prices of a try, and how far bad luck may overdraw, in cycles that lose all."""
CHEAP = 1.0
"""Plain steps that the first try may cost: a dear one would be felt in a short answer."""
FIRST_GAP, LAST_GAP = 4, 64
"""Plain cycles between tries: each that shows nothing doubles them."""


class Account:
    """Of one request: speculation that wins pays in, speculation that loses is paid from it, and so are tries.

    The first try is free where it is cheap, so that a request takes at most 1 + SHARE of the time of plain decoding, a
    try, and DEBT. Times are the medians of such cycles rather than those of this one: a stall of the machine is
    nobody's loss.
    """

    def __init__(self) -> None:
        self._balance = 0.0
        self._free = True
        self._gap, self._waited = FIRST_GAP, FIRST_GAP

    def allows_try(self, price: float, plain: float) -> bool:
        """Whether drafting, which does not promise to pay, can be tried for this many seconds now.

        `plain` is the time of a plain step.
        """
        if self._free and price <= CHEAP * plain:
            return True
        return self._waited >= self._gap and self._balance >= price

    def allows(self, stake: float) -> bool:
        """Whether drafting that promises to pay, and can lose this `stake` a cycle, has kept its promises so far."""
        return self._balance >= -DEBT * stake

    def plain(self, seconds: float) -> None:
        """Books a plain cycle."""
        self._waited += 1
        self._balance += SHARE * seconds

    def drafted(self, plain: float, taken: float, price: float, *, tried: bool) -> None:
        """Books another: seconds that plain decoding would take for its tokens, its own, and the price of a try."""
        won = plain - taken
        if tried and self._free:
            self._free, won = False, max(won, 0.0)
        balance = self._balance + SHARE * plain + won
        self._balance = min(balance, max(self._balance, MOST * price))
        self._gap = min(2 * self._gap, LAST_GAP) if tried else FIRST_GAP
        self._waited = 0
