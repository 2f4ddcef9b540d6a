"""Dates in digits, and what they say in words: "2023-04-09" is a day in April."""

from __future__ import annotations

import re

from vouchgate.ingest.language.terms import Kind, term_key

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_SHORTEST, _LONGEST = len("2023-04"), len("2023-04-09")
# Of "04/05/2023" nobody knows which is the month, but of "14/05/2023", of "14.5.2023" and of "05/2023".
_FORMS = tuple(
    re.compile(form)
    for form in (
        r"(?P<year>[12]\d{3})-(?P<month>\d\d)(?:-(?P<day>\d\d))?",
        r"(?:(?P<day>1[3-9]|2\d|3[01])/)?(?P<month>\d\d?)/(?P<year>[12]\d{3})",
        r"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>[12]\d{3})",
    )
)
_IN_NAME = re.compile(r"(?<!\d)[12]\d{3}-\d\d(?:-\d\d)?(?!\d)")


def dates_in(name: str) -> str:
    """The dates that stand in a name, as in that of a file: "notes/2023-04-09-sync.md". Linear."""
    return " ".join(_IN_NAME.findall(name))


def parts_of_date(shown: str) -> tuple[tuple[str, Kind], ...]:
    """The year, the month by its name and the day of a date in digits, as the keys and kinds of words; empty for any
    other word. Constant time."""
    if not (_SHORTEST <= len(shown) <= _LONGEST and shown[0].isdigit()):
        return ()
    match = next((match for form in _FORMS if (match := form.fullmatch(shown))), None)
    if match is None or not 1 <= int(match["month"]) <= len(MONTHS):
        return ()
    month = (term_key(MONTHS[int(match["month"]) - 1]), Kind.WORD)
    day = match["day"]
    return ((match["year"], Kind.NUMBER), month, *(((str(int(day)), Kind.NUMBER),) if day else ()))
