"""The figures of the dedup bench in words: tables, and what was aimed at beside what was reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.dedup_measure import Figures, quantiles

# The aims of the work on dedup; times are of the check with its keys, beside the bare look-up by key.
MOST_RATIO = {"sqlite": 2.5, "postgresql": 1.5}
MOST_GROWTH = 1.3
MOST_SPREAD = 5.0
LABELS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


@dataclass
class Section:
    """What was measured on one store: of `size` claims, dealt out to `owners`, or flooded by a template.

    By database, `checks` are the bare look-up, that of the whole row, the check with keys made before, and the
    check; `inserts` the bare row, the dedup part alone, the gate one by one and the gate in groups.
    """

    size: int
    owners: int
    flood: str | None = None
    rivals: list[Figures] = field(default_factory=list)
    checks: dict[str, list[Figures]] = field(default_factory=dict)
    inserts: dict[str, list[Figures]] = field(default_factory=dict)
    scans: dict[str, Figures] = field(default_factory=dict)

    def ratio(self, database: str) -> float:
        """Median of the check over median of the bare look-up."""
        bare, *_, check = self.checks[database]
        return quantiles(check.times)[0] / quantiles(bare.times)[0]

    def check(self, database: str) -> Figures:
        """The gate's check with its keys."""
        return self.checks[database][-1]

    def as_json(self) -> dict[str, Any]:
        """What the picture is drawn from; times in seconds."""
        lines = [*self.rivals, *self.scans.values()]
        lines += [figures for checks in self.checks.values() for figures in checks]
        return {
            "size": self.size,
            "owners": self.owners,
            "flood": self.flood,
            "check": {line.name: list(quantiles(line.times)) for line in lines if line.times},
            "recall": {line.name: line.recall for line in lines if line.judged},
            "ratio": {database: self.ratio(database) for database in self.checks},
        }


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3f}" if seconds < 0.1 else f"{seconds * 1000:.0f}"


def _share(share: float | None) -> str:
    """Never rounded up to 1: a single miss in a million shows."""
    if share is None:
        return "-"
    return "1" if share == 1 else f"{min(share, 0.9999):.4f}"


def _line(figures: Figures, bare: Figures | None, baseline: str) -> str:
    if figures.note:
        return f"  {figures.name:<40} {figures.note}"
    p50, p99 = quantiles(figures.times)
    ratio = f"{p50 / quantiles(bare.times)[0]:9.1f} {baseline}" if bare is not None else " " * 11
    checked = f"{len(figures.times):>5} {_ms(p50):>9} {_ms(p99):>9} {ratio}"
    inserted = (
        " ".join(f"{_ms(end):>9}" for end in quantiles(figures.inserts))
        if figures.inserts
        else f"{'-':>9} {'-':>9}"
    )
    size = "-" if figures.bytes_each is None else f"{figures.bytes_each:.0f}"
    build = "-" if figures.build_seconds is None else f"{figures.build_seconds:.1f}"
    judged = f"{_share(figures.recall):>7} {_share(figures.precision):>7} {figures.judged:>6}"
    unsure = f"  {figures.incomplete} not complete" if figures.incomplete else ""
    return f"  {figures.name:<40} {checked} {inserted} {judged} {size:>7} {build:>7}{unsure}"


_HEAD = (
    f"  {'':<40} {'n':>5} {'p50 ms':>9} {'p99 ms':>9} {'ratio to':>11} "
    f"{'+ins p50':>9} {'p99':>9} {'recall':>7} {'precis.':>7} {'judged':>6} {'B/claim':>7} {'build s':>7}"
)


def print_section(section: Section) -> None:
    """One table: first what lies in memory, then the databases, then inserting."""
    whose = "one owner" if section.owners == 1 else f"{section.owners:,} owners"
    print(f"\n{section.size:,} claims, {whose}. (s), (p): bare look-up by key on SQLite, on PostgreSQL")
    print(_HEAD)
    base = section.checks["sqlite"][0]
    for figures in section.rivals:
        print(_line(figures, base, "s"))
    for database, checks in section.checks.items():
        mark = database[0]
        for figures in (section.scans[database], *checks):
            print(_line(figures, None if figures is checks[0] else checks[0], mark))
    print(f"\n  {'check and insert, durable, a claim':<40} {'n':>5} {'p50 ms':>9} {'p99 ms':>9}   ratio to")
    for inserts in section.inserts.values():
        _print_inserts(inserts)


def _print_inserts(inserts: Sequence[Figures]) -> None:
    base = quantiles(inserts[0].inserts)[0]
    for figures in inserts:
        p50, p99 = quantiles(figures.inserts)
        ratio = "" if figures is inserts[0] else f"{p50 / base:9.1f} bare row and commit"
        count = len(figures.inserts) * figures.per_insert
        print(f"  {figures.name:<40} {count:>5} {_ms(p50):>9} {_ms(p99):>9} {ratio}")


def print_floods(sections: Sequence[Section]) -> None:
    """A line a template and database."""
    print(f"\nFloods: an owner with {sections[0].size:,} claims of one template, all templates in one store")
    print(
        f"  {'':<32} {'':<10} {'p50 ms':>9} {'p99 ms':>9} {'p50/bare':>9} {'p99/p50':>8} "
        f"{'recall':>7} {'precis.':>7} {'judged':>6} {'B/claim':>7}   gate, one a commit: p50, p99 ms, to bare row"
    )
    for section in sections:
        for database in section.checks:
            check, inserts = section.check(database), section.inserts[database]
            p50, p99 = quantiles(check.times)
            stored = quantiles(inserts[2].inserts)
            unsure = f"  {check.incomplete} not complete" if check.incomplete else ""
            print(
                f"  {section.flood:<32} {LABELS[database]:<10} {_ms(p50):>9} {_ms(p99):>9} "
                f"{section.ratio(database):9.1f} {p99 / p50:8.1f} {_share(check.recall):>7} "
                f"{_share(check.precision):>7} {check.judged:>6} {check.bytes_each or 0:7.0f}   "
                f"{_ms(stored[0])} {_ms(stored[1])} {stored[0] / quantiles(inserts[0].inserts)[0]:.1f}{unsure}"
            )


def print_aims(sections: Sequence[Section]) -> None:
    """What was aimed at, what came out, and whether that is it."""
    print("\nAims (check with its keys; bare: a look-up by key through the same driver and layer)")
    stores = [section for section in sections if section.flood is None]
    floods = [section for section in sections if section.flood is not None]
    for database, label in LABELS.items():
        for section in stores:
            name = f"{label}, {section.size:,} claims, {section.owners:,} owner(s)"
            _aim(f"{name}: p50 / bare", section.ratio(database), MOST_RATIO[database])
            noise = _spread(section.checks[database][0])
            _aim(f"{name}: p99 / p50 (bare: {noise:.1f})", _spread(section.check(database)), MOST_SPREAD)
        for owners in dict.fromkeys(section.owners for section in stores):
            same = [section for section in stores if section.owners == owners]
            low, high = (quantiles(end.check(database).times)[0] for end in (same[0], same[-1]))
            growth = f"{label}, {owners:,} owner(s): p50 at {same[-1].size:,} / at {same[0].size:,}"
            _aim(growth, high / low, MOST_GROWTH)
        if floods:
            worst = max(floods, key=lambda section: section.ratio(database))
            _aim(
                f"{label}, floods: p50 / bare, worst ({worst.flood})",
                worst.ratio(database),
                MOST_RATIO[database],
            )
            worst = max(floods, key=lambda section: _spread(section.check(database)))
            noise = _spread(worst.checks[database][0])
            name = f"{label}, floods: p99 / p50, worst ({worst.flood}; bare: {noise:.1f})"
            _aim(name, _spread(worst.check(database)), MOST_SPREAD)
        _exactness(label, [section.check(database) for section in sections])


def _spread(figures: Figures) -> float:
    """How far the slow end is from the middle; that of the bare look-up is what else the machine was doing."""
    p50, p99 = quantiles(figures.times)
    return p99 / p50


def _aim(name: str, value: float, most: float) -> None:
    reached = "reached" if value <= most else "NOT REACHED"
    print(f"  {name:<80} {value:6.2f}  (aim {most:g})  {reached}")


def _exactness(label: str, checks: Iterable[Figures]) -> None:
    checks = list(checks)
    true, hit, given = (sum(getattr(one, name) for one in checks) for name in ("true", "hit", "given"))
    judged, unsure = sum(one.judged for one in checks), sum(one.incomplete for one in checks)
    exact = "reached" if true == hit == given and not unsure else "NOT REACHED"
    print(
        f"  {label + ', recall and precision':<80} {hit} of {true} found, {given - hit} wrong, {unsure} not "
        f"complete, {judged} claims  (aim 1, 1)  {exact}"
    )
