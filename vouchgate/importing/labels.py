"""One word a row for whatever else reads the audit: what is the matter with it, and with which row it has to do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

REASON_CHARACTERS = 2_000  # as of every reason of the API
NAME_CHARACTERS = 300  # of a row that is handed over
_NUMBERED = re.compile(r"(?:line|item|row|observation) (\d+)(?: \((?:line|item) \d+\))?")


class RowLabel(StrEnum):
    """What is the matter with a row. One with several faults is called by the first of them here."""

    CREDENTIAL = "credential"
    INJECTION = "injection"  # it gives a model orders, or holds what nobody sees
    REPEAT = "repeat"  # in the same words
    BAD_CITATION = "bad_citation"
    SPECULATION = "speculation"
    PARAPHRASE = "paraphrase"  # the same in other words
    UPDATE = "update"  # it says otherwise than an earlier row and that it takes its place, which is no junk
    CONTRADICTION = "contradiction"
    PERSONAL_DATA = "personal_data"  # what the policy masks or lets wait: no junk
    HEDGED = "hedged"  # roughly, usually, should: no junk
    FINE = "fine"


@dataclass(slots=True)
class LabelledRow:
    """A row with its label. `other` is the place of the earlier row that it repeats, replaces or contradicts; of one
    that was saved after it, and stands behind it in the file, it is told when that one is read."""

    place: str
    text: str
    label: RowLabel
    other: str | None
    reason: str

    def as_json(self) -> dict[str, Any]:
        """As one JSON line."""
        told: dict[str, Any] = {"row": row_name(self.place), "text": self.text, "label": self.label.value}
        if self.other is not None:
            told["other_row"] = row_name(self.other)
        reason = self.reason
        reason = reason if len(reason) <= REASON_CHARACTERS else f"{reason[: REASON_CHARACTERS - 2]} …"
        return {**told, "reason": reason}

    def as_line(self) -> str:
        """The same, written."""
        return json.dumps(self.as_json(), ensure_ascii=False)


def labelled(place: str, text: str, said: Mapping[RowLabel, str], other: str | None) -> LabelledRow:
    """The row by the gravest of what was `said` of it, a sentence for each label; `other` belongs to those that are
    about two rows."""
    for label in RowLabel:
        if label in said:
            paired = label in (RowLabel.REPEAT, RowLabel.PARAPHRASE, RowLabel.UPDATE, RowLabel.CONTRADICTION)
            return LabelledRow(place, text, label, other if paired else None, said[label])
    return LabelledRow(place, text, RowLabel.FINE, None, "Nothing is the matter with it.")


def row_name(place: str) -> int | str:
    """A place as JSON lines name it: the number of a line, item or observation; of a document, its file and line."""
    numbered = _NUMBERED.fullmatch(place)
    return place if numbered is None else int(numbered[1])


def short_name(name: int | str) -> int | str:
    """A name as an audit that is handed over shows it: of a long one the end, where the line stands."""
    return (
        f"…{name[1 - NAME_CHARACTERS :]}" if isinstance(name, str) and len(name) > NAME_CHARACTERS else name
    )
