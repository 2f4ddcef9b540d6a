"""What looking for evidence may still cost."""

from __future__ import annotations

from vouchgate.ingest.policy import SearchBudget


class Purse:
    """What is left of a budget. Whatever is taken is taken from the purses above too, and none is to be had of one
    that is empty."""

    def __init__(self, budget: SearchBudget, whose: str, above: Purse | None = None) -> None:
        """`whose`: "claim", "owner" or "run", for sentences."""
        self._budget = budget
        self._whose = whose
        self._above = above
        self._looks, self._pages, self._seconds = budget.looks, budget.pages, budget.seconds

    def empty(self) -> str:
        """Why there is no look more to be had, in a sentence; "" when there is one."""
        for left, what in ((self._looks, f"{self._budget.looks} looks"), (self._seconds, self._time)):
            if left <= 0:
                return f"the budget of the {self._whose} is spent ({what})"
        return "" if self._above is None else self._above.empty()

    @property
    def seconds(self) -> float:
        """How long may be looked."""
        return self._seconds if self._above is None else min(self._seconds, self._above.seconds)

    def take_look(self) -> None:
        """Pays for a look."""
        self._looks -= 1
        if self._above is not None:
            self._above.take_look()

    def take_pages(self, wanted: int) -> int:
        """Pays for pages; how many there are to be had."""
        had = min(wanted, self._pages)
        if self._above is not None:
            had = self._above.take_pages(had)
        self._pages -= had
        return had

    def spend(self, seconds: float) -> None:
        """Pays for time that was spent looking."""
        self._seconds -= seconds
        if self._above is not None:
            self._above.spend(seconds)

    @property
    def _time(self) -> str:
        return f"{self._budget.seconds:g} s"
