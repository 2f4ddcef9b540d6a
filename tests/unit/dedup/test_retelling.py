"""What a memory is to an earlier one that has few of its words: a repeat, an update, a contradiction, or nothing."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.relation import Relation
from vouchgate.ingest.dedup.retelling import Teller, joining_keys, said, says_it_replaces
from vouchgate.ingest.dedup.rewording import Rewriter

WORDS = Rewriter(load_policy().values)

SAME = [
    ("Grows roses behind the shed", "Roses are grown by the user behind the shed"),
    ("Is allergic to walnuts", "Has a walnut allergy"),
    ("Hates olives", "Can't stand olives"),
    ("Snapshots are kept for twelve weeks (ADR-0007)", "A snapshot is kept for 12 weeks"),
    ("The crawler needs a proxy", "A proxy is required by the crawler"),
    ("Press kit (page): the photos are made by Ilse Roth", "Press kit (page): Ilse Roth makes the photos"),
    ("Do not deploy on bank holidays", "Deployments on bank holidays are forbidden"),
    ("The kiln is fired on the 3rd of each month", "On the third of every month the kiln is fired"),
]
UPDATES = [
    ("Lives in Utrecht", "Now lives in Malmö, close to the harbour"),
    ("The choir meets on Mondays", "The choir was moved and meets on Wednesdays: the hall is taken"),
    ("The mixer runs at 40 turns a minute", "The mixer runs at 55 turns a minute since March"),
    ("The bundler is webpack", "We replaced webpack with esbuild"),
    ("Kiln 2 (oven): is run by Ottmar", "Kiln 2 (oven): is no longer run by Ottmar but by Svea"),
    ("Subscribes to the evening paper", "Cancelled the evening paper"),
    ("The lease is 700 francs", "The lease is 740 francs from April on"),
    ("Alice leads the search team", "Bob now leads the search team"),
    ("Room 12 is on floor 3", "Room 12 has moved to floor 5"),
    ("Version 23.2 is used for all studies", "Version 24.1 has replaced 23.2 for all studies"),
    ("Deployments run on Tuesdays", "We now deploy on Thursdays"),
]
CONFLICTS = [
    ("Prefers aisle places at concerts", "Prefers balcony places at concerts"),
    ("Loves olives", "Hates olives"),
    ("The kiln holds 30 litres", "The kiln holds 45 litres"),
    ("Paints at the studio on Tuesdays", "Never paints on Tuesdays"),
    ("Indent with tabs", "Indent with two spaces, and sort the imports"),
    ("Mill 4 (machine): works at dawn on even days", "Mill 4 (machine): never works at dawn"),
    ("The threshold is ten seconds", "The threshold is one minute"),
    ("Choir (group): the only tenor is Ivo Lang", "Choir (group): the only tenor is Jan Beck"),
]
NOTHING = [
    ("Likes figs", "Likes dates"),
    ("Saw Oslo in 2017", "Saw Oslo in 2021"),
    ("The roof was mended in May 2023", "The roof was mended in June 2024"),
    ("Kiln 2 (oven): holds 30 litres", "Kiln 3 (oven): holds 45 litres"),
    ("The seed tool reads the table plants", "The seed tool reads the table users"),
    ("Is allergic to walnuts", "Is not allergic to hazelnuts"),
    ("Chess is on Mondays", "Judo is on Fridays"),
    ("Has lunch with Ada on Mondays", "Has lunch with Bob on Fridays"),
    ("Paints on Tuesdays at noon", "Now sings in the choir of the parish"),
    ("Teller 7 counts the coins", "Teller 9 counts the notes"),
    ("Lea moved to Osaka in 2019", "Cem moved to Osaka in 2021"),
    ("Room 12 has moved to floor 3", "Room 14 has moved to floor 5"),
    ("Ticket 512 is now closed", "Ticket 538 is now closed"),
    ("Alice now leads the search team", "Bob now leads the mail team"),
    ("Ada now prefers tea", "Ben now prefers coffee"),
    ("Alice uses tabs", "Bob now uses spaces"),
    ("The billing service listens on port 8080", "The invoice service listens on port 8080"),
    ("Backups of the wiki are now kept for 9 days", "Backups of the shop are now kept for 30 days"),
]


def _told(earlier: str, later: str) -> Relation | None:
    found = Teller(later, WORDS).of(earlier)
    return found.relation if found else None


def test_each_pair_is_told_for_what_it_is_and_meets_by_a_key() -> None:
    expected = {Relation.REPEAT: SAME, Relation.UPDATE: UPDATES, Relation.CONFLICT: CONFLICTS, None: NOTHING}
    wrong = [
        (relation, earlier, later, told)
        for relation, pairs in expected.items()
        for earlier, later in pairs
        if (told := _told(earlier, later)) is not relation
    ]
    assert not wrong
    for earlier, later in (*SAME, *UPDATES, *CONFLICTS):
        ours, theirs = joining_keys(later, "fact"), joining_keys(earlier, "fact")
        assert set(ours) & set(theirs), (earlier, later)
        assert set(ours).isdisjoint(joining_keys(earlier, "preference"))


def test_words_of_change() -> None:
    changed = ["Now in Ghent", "closed since 3 May", "from June on", "Mia turned 7", "no  longer\nhere"]
    same = ["Closed since it rained", "from home on Mondays", "nowhere", "She knows", "The renowned mill"]
    assert [text for text in (*changed, *same) if says_it_replaces(text)] == changed


def test_what_is_long_is_not_compared() -> None:
    long = "The mill grinds rye. " * 30
    assert joining_keys(long, "fact") == ()
    assert Teller(long, WORDS).of("The mill grinds rye.") is None
    assert Teller("The mill grinds rye.", WORDS).of(long) is None
    assert len(joining_keys(" ".join(f"word{n}x" for n in range(40)), "fact")) == 22


@given(st.text(max_size=80), st.text(max_size=80))
@example("\ud800: \ud800", "`")
@example("A (b): ", "A (b): n't")
@example("(ADR-1)", "' - '")
@example(
    "A firſt aid box stands at the door", "A fİrst aid box"
)  # letters that are the same to a pattern alone
def test_any_text_is_read(one: str, other: str) -> None:
    found = Teller(one, WORDS).of(other)
    assert found is None or (found.shared >= 0 and all(found.changed) is True)
    assert joining_keys(one, "fact") == joining_keys(one, "fact")
    assert said(one).faint.isdisjoint(said(one).keys)
