"""Who does what to whom, why, in which order, and whether it is done: a place that has a statement's words otherwise
does not say it, and one that says it in another voice or order does."""

from __future__ import annotations

import pytest

from vouchgate.ingest.checks.statements import TURNED
from vouchgate.ingest.claims.source import Held, Stance
from vouchgate.ingest.support.source_text import SourceText
from vouchgate.ingest.support.stance import stances

FLOWS = """# Flows

| From | To | What | How |
|---|---|---|---|
| gauge | almanac | hourly levels of the river | topic `levels` |
| almanac | printer | tables for the week | folder `out` |
"""
TRIAL = """# Trial

|  | Alder | Birch | Cedar |
|---|---|---|---|
| Speed in the trial | 40 a minute | 12 a minute | 55 a minute |
"""
TASKS = """# After the flood

| What | Who | State |
|---|---|---|
| Raise the gauge by a metre | Piet Zand | done 16 May |
| Print the tables on cloth | Ines Moll | open, due 30 May |
"""


def hold(claim: str, source: str) -> Held:
    *_, held = stances(claim, SourceText(source))
    return held


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        # who does it
        (
            "The guild pays for the upkeep of the river gauges.",
            "The mill pays for the upkeep of the river gauges.",
        ),
        (
            "Ines Moll decides when the tables are printed.",
            "Piet Zand runs the mill. Ada Holm, the clerk, decides when the tables are printed. Ines Moll reads them.",
        ),
        ("Ines Moll goes along to the weir.", "Ines Moll needs a boat. Piet Zand goes along to the weir."),
        ("Piet Zand was phoned by Ada Holm about the flood.", "Piet Zand phoned Ada Holm about the flood."),
        ("Ada Holm is mentored by Piet Zand.", "Piet Zand joined in May. Ada Holm mentors him."),
        (
            "The checklist was written by Piet Zand.",
            "Piet Zand tried the pump. Ines Moll wrote the checklist.",
        ),
        (
            "Alder was not chosen because its servers are abroad.",
            "Alder is cheap, but slow. Birch is the fastest, but its servers are abroad.",
        ),
        # what is done
        ("Ines Moll repaired the gauges twice.", "Ines Moll counted the gauges twice."),
        (
            "The gauges are painted in May, when the river is low.",
            "The gauges drift. They are levelled in May, when the river is low.",
        ),
        (
            "The clerk orders a pump from the mill for each gauge.",
            "The clerk orders a float from the mill for each gauge.",
        ),
        (
            "The almanac sends the tables to the bakers.",
            "The almanac draws up the tables and sends them to the millers. The bakers wait.",
        ),
        # why, and when
        (
            "The tables are short because the press is slow.",
            "The press is slow because the tables are short.",
        ),
        ("The slow press caused the long tables.", "The long tables caused the slow press."),
        (
            "We tried wide tables because the clerks refused to read them.",
            "We tried wide tables in March and the clerks refused to read them.",
        ),
        (
            "Alder was dropped because nobody would maintain it.",
            "Alder was dropped because it costs too much. Birch was dropped because nobody would maintain it.",
        ),
        (
            "The gauge was raised before the millers asked for it.",
            "The millers asked for it before the gauge was raised.",
        ),
        (
            "Owners of tall wheels pay more than before.",
            "Owners of tall wheels pay less than before, owners of wide wheels pay more.",
        ),
        # what is not done yet
        ("The millers have joined the watch.", "The millers are welcome to join the watch."),
        (
            "The clerk removed the old tables.",
            "The old tables are kept until May; the clerk will remove them.",
        ),
        (
            "The mill opens the weir for the clerk in April.",
            "The clerk may ask the mill to open the weir in April.",
        ),
        (
            "The almanac will be a page without pictures.",
            "Ines Moll wanted to make it a page without pictures, and Piet Zand said no.",
        ),
        (
            "The press already prints two copies before each flood.",
            "Agreed: the press prints two copies before each flood.",
        ),
        ("The watch forbids the clerk to open the weir.", "What the clerk does on watch:\n\n- open the weir"),
        # tables
        ("Hourly levels of the river are sent to the gauge by the almanac.", FLOWS),
        ("Hourly levels of the river come from the almanac.", FLOWS),
        ("Tables for the week are written by the gauge into the folder `out`.", FLOWS),
        ("Alder had a speed of 12 a minute in the trial.", TRIAL),
        ("Printing the tables on cloth is done.", TASKS),
        ("Raising the gauge by a metre is still open.", TASKS),
        # who did what, and who was what
        (
            "Piet Zand took the minutes and Ines Moll was in the chair.",
            "Present: Ines Moll (minutes), Ada Holm, Piet Zand (chair)",
        ),
        ("Ada Holm threw the main switch.", "- 19:12 Piet throws the main switch."),
        (
            "The gauge reads the smoke detector and moves the pen.",
            "The gauge is a small box at the weir. It reads the float and moves the pen.",
        ),
        # in which case
        (
            "The weir is opened as soon as the page of the float shows a fault.",
            "Look at the page of the float. If the float is away for more than an hour, open the weir.",
        ),
        (
            "We decided for tin gauges at the weir.",
            "We decided for oak gauges and against tin gauges at the weir.",
        ),
        (
            "The watch obliges the clerk to open the weir.",
            "What the clerk may do on watch:\n\n- open the weir",
        ),
        (
            "Millers demanded copies of the levels from the clerk.",
            "A miller can demand copies of the levels from the clerk.",
        ),
        ("The press is going to be moved to the mill.", "The press has been moved to the mill."),
        ("The tables on cloth have been printed.", TASKS),
        ("The task is done.", "# After the flood\n\n## Tasks\n\n- Raise the gauge.\n"),
    ],
)
def test_what_is_told_of_another_or_otherwise_is_not_stated(claim: str, source: str) -> None:
    held = hold(claim, source)
    assert held.stance is not Stance.STATES, held
    assert held.stance is Stance.SILENT or held.why in TURNED, held


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        (
            "The mill pays for the upkeep of the river gauges.",
            "The mill pays for the upkeep of the river gauges.",
        ),
        (
            "Ada Holm decides when the tables are printed.",
            "Piet Zand runs the mill. Ada Holm, the clerk, decides when the tables are printed.",
        ),
        ("Ada Holm was phoned by Piet Zand about the flood.", "Piet Zand phoned Ada Holm about the flood."),
        (
            "The miller is paid 80 % of the loss by the guild.",
            "A flood costs the miller a day. The guild pays the miller 80 % of the loss.",
        ),
        (
            "The almanac was printed in May by Ines Moll.",
            "The almanac is a table printed by Ines Moll in May.",
        ),
        (
            "Because the press is slow, the tables are short.",
            "The tables are short because the press is slow.",
        ),
        ("The press is slow, so the tables are short.", "The tables are short since the press is slow."),
        (
            "The tables are packed to 32 lines, since paper is paid by the page.",
            "The tables are packed to 32 lines or so, since paper is paid by the page.",
        ),
        (
            "The gauge was raised after the millers asked for it.",
            "The gauge was raised after the millers asked for it.",
        ),
        (
            "Dawn bread has more salt per loaf than rye bread.",
            "Dawn bread has less sugar than rye bread, but more salt per loaf.",
        ),
        ("We decided to move the press to the mill.", "We decided to move the press to the mill."),
        (
            "The agreement forbids the clerk to look at levels older than 24 hours.",
            "The agreement was signed by both houses in May 2025. It forbids\n"
            "the clerk to look at levels older than 24 hours.",
        ),
        (
            "Ines Moll approves the text after a wrong warning.",
            "After a wrong warning send a note within 30 minutes. Ines Moll approves the text.",
        ),
        (
            "The press was dropped because it was slow to clean.",
            "We used the press until March and dropped it, because it was slow to clean.",
        ),
        ("Hourly levels of the river go to the almanac on the topic `levels`.", FLOWS),
        ("Raising the gauge by a metre was done on 16 May.", TASKS),
        ("The press will be moved to the mill in May.", "The press will be moved to the mill in May."),
        (
            "The weir gates are oiled only in May, and the clerks oil the wheel.",
            "The weir gates are old (from 1950) and oiled only in May; the clerks oil the wheel.",
        ),
        (
            "The watch pays 320 euros a week plus 45 euros for each call at night.",
            "The watch pays 320 euros a week. For each call at night it pays 45 euros on top.",
        ),
        (
            "The weir is opened when the miller is away for an hour.",
            "If the miller is away for an hour, the weir is opened.",
        ),
    ],
)
def test_what_is_said_in_another_voice_or_order_is_not_held_against_a_claim(claim: str, source: str) -> None:
    held = hold(claim, source)
    assert held.why not in TURNED, held
    assert held.stance in {Stance.STATES, Stance.SPEAKS} and not held.uncovered, held
