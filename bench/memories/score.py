"""How well the audit tells what is the matter with each row of the three memories.

**Junk** is a row that repeats an earlier one in whatever words, contradicts one, guesses, holds a credential, gives
a model orders, or cites what is not there. Updates, hedges, personal data and all that is fine are none.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from bench.memories import NAMES, Row, load, write
from vouchgate.cli.app import run as vouchgate

JUNK = ("repeat", "paraphrase", "contradiction", "speculation", "credential", "injection", "bad_citation")
OTHER = ("update", "hedged", "personal_data", "fine")


@dataclass(frozen=True)
class Told:
    """A row with what the audit said of it; `other` is the row that it named."""

    row: Row
    label: str
    other: Row | None
    reason: str


@dataclass
class Score:
    """Counts of one memory, or of several."""

    told: list[Told] = field(default_factory=list)

    def rate(self, labels: Iterable[str]) -> tuple[int, int, int]:
        """Rows that were called one of these and are one, that were called one, and that are one."""
        some = set(labels)
        called = [one for one in self.told if one.label in some]
        right = [one for one in called if one.row.label in some]
        return len(right), len(called), sum(one.row.label in some for one in self.told)

    def told_apart(self) -> tuple[int, int]:
        """Of the updates and contradictions that the audit called one of the two, those with their own label."""
        both = {"update", "contradiction"}
        found = [one for one in self.told if {one.label, one.row.label} <= both]
        return sum(one.label == one.row.label for one in found), len(found)

    def paired(self) -> tuple[int, int]:
        """Of the rows with their own label that are about two rows, those beside the right one."""
        found = [one for one in self.told if one.label == one.row.label and one.row.other_row]
        right = sum(one.other is not None and one.other.id == one.row.other_row for one in found)
        return right, len(found)


def audited(name: str, *, held: bool | None) -> list[Told]:
    """Each row of a half of the memory (None: of both) with what `vouchgate import --dry-run` says of it."""
    with tempfile.TemporaryDirectory() as folder:
        path, rows = write(load(name, held=held), name, Path(folder))
        lines = Path(folder) / "audit" / "rows.jsonl"
        command = ["import", "--dry-run", "--offline", "--report", str(lines), "--repo", folder, str(path)]
        with redirect_stdout(StringIO()):
            status = vouchgate(command)
        if status:
            raise RuntimeError(f"vouchgate {' '.join(command)}: exit status {status}")
        answers = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    places: dict[int | str, Row] = {}
    if name == "coding":  # a list item has one row a sentence, and no item of ours has two
        places.update((f"CLAUDE.md:{number}", row) for number, row in enumerate(rows, 3))
    else:
        places.update(enumerate(rows, 1))
    told = {answer["row"]: answer for answer in answers}
    if told.keys() != places.keys():
        raise RuntimeError(f"{name}: rows are missing or too many: {sorted(told.keys() ^ places.keys())}")
    return [
        Told(row, told[at]["label"], places.get(told[at].get("other_row")), told[at]["reason"])
        for at, row in places.items()
    ]


def run(*, held: bool = False, show: str = "") -> None:
    """Prints the figures of the halves that rules were made by, or of those held back; also the rows of which
    this label was missed or called wrongly, which is for the first ones."""
    scores = {name: Score(audited(name, held=held)) for name in NAMES}
    whole = Score([one for score in scores.values() for one in score.told])
    which = "held back" if held else "that rules were made by"
    print(f"\nMemories: what the audit says of each row, the halves {which}")
    for name, score in {**scores, "all": whole}.items():
        right, called, are = score.rate(JUNK)
        apart, pairs = score.told_apart()
        beside, found = score.paired()
        print(
            f"  {name:<10} {len(score.told):>4} rows, {are:>3} junk: precision {_share(right, called)}, recall"
            f" {_share(right, are)}; update or contradiction told right {_share(apart, pairs)} of {pairs};"
            f" the right other row {_share(beside, found)} of {found}"
        )
    print(f"  {'label':<14} {'rows':>5} {'called':>7} {'precision':>10} {'recall':>7}   called instead")
    for label in (*JUNK, *OTHER):
        right, called, are = whole.rate([label])
        instead = Counter(one.label for one in whole.told if one.row.label == label != one.label)
        others = ", ".join(f"{name} {times}" for name, times in instead.most_common())
        print(
            f"  {label:<14} {are:>5} {called:>7} {_share(right, called):>10} {_share(right, are):>7}   {others}"
        )
    for one in whole.told if show else ():
        if one.label != one.row.label and show in (one.label, one.row.label):
            beside_text = f" <> {one.other.text!r}" if one.other else ""
            print(
                f"  {one.row.label} called {one.label}: {one.row.id} {one.row.text!r}{beside_text} ({one.reason})"
            )


def _share(part: int, of: int) -> str:
    return f"{part / of:.2f}" if of else "-"
