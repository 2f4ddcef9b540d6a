"""What a source does to a statement: it says it, speaks of it, or is silent, and nothing near is taken for the same."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from vouchgate.ingest.claims.source import Held, Stance
from vouchgate.ingest.contradictions.rules import contradictions
from vouchgate.ingest.support.source_text import LONGEST, SourceText
from vouchgate.ingest.support.stance import MOST_WORDS, stances
from vouchgate.ingest.support.tokens import Token

STATES, SPEAKS, SILENT, REFUTES = Stance.STATES, Stance.SPEAKS, Stance.SILENT, Stance.REFUTES
TEXT = """The relay keeps mail for 30 days in the main store, and Postfix sends it on every 15 minutes.
Workers restart at noon. The queue does not block callers. We use PostgreSQL for sessions.
The flag `--max-retries` sets how often a job is tried. Backups are encrypted.
Amazon Web Services (AWS) hosts the archive. A lease lasts two hours. The nightly export never runs on Sunday.
All builds use Linux. The server speaks HTTP/1.1. The cache shrinks when load rises."""


def held(claim: str, text: str = TEXT, title: str = "") -> tuple[Held, ...]:
    return stances(claim, SourceText(text, title))


def one(claim: str, text: str = TEXT, title: str = "") -> Held:
    (only,) = held(claim, text, title)
    return only


@pytest.mark.parametrize(
    "claim",
    [
        "The relay keeps mail for 30 days.",
        "Mail is kept for 30 days by the relay.",  # another order and voice
        "Postfix sends mail every 15 minutes.",
        "The queue does not block callers.",
        "The nightly export never runs on Sunday.",
        "Sessions use PostgreSQL.",
        "The flag `--max-retries` sets how often a job is tried.",
        "AWS hosts the archive.",
        "A lease lasts 2 hours.",
        "All builds use Linux.",
    ],
)
def test_a_source_states_what_it_says_in_one_place(claim: str) -> None:
    found = one(claim)
    assert (found.stance, found.uncovered, found.why) == (STATES, (), "")
    assert found.place is not None
    assert (found.start, found.end) == (0, len(claim))


@pytest.mark.parametrize(
    ("claim", "source", "title"),
    [
        ("A lease lasts two hours.", "A lease lasts 2 hours.", ""),  # a value spelled out
        ("The lock has a 15-minute lease.", "The lock has a lease of 15 minutes.", ""),  # a compound
        ("The end-to-end test takes long.", "The test, end to end, takes long.", ""),
        ("The default of maxRetries is five.", "The default of max retries is 5.", ""),
        ("Amazon Web Services hosts it all.", "AWS hosts it all.", ""),  # an abbreviation, either way
        ("AWS hosts it all.", "Amazon Web Services hosts it all.", ""),
        (
            "The relay keeps mail for 30 days.",
            "It keeps mail for 30 days.",
            "The relay",
        ),  # the title names it
        (
            "The gateway listens on port 80.",
            "The gateway listens on port 80, and nothing else of ours does.",
            "",
        ),
        ("Access tokens expire after two hours.", "| access tokens | expire after 2 hours |", ""),
        (
            "Boats with a red flag need a pilot.",
            'Boats with a red flag need a pilot; those with "no" in their row do.',
            "",
        ),
        ("Tickets are slips rather than coins.", "Tickets are slips. We do not use coins for tickets.", ""),
        (  # "move" stands in another sentence
            "The archive of the harbour moves to York in spring.",
            "The archive of the harbour migrates to York in spring. No boat may move in a storm.",
            "",
        ),
        # A verb that tells little, and one that is done to what stands before it.
        (
            "Every boat of the guild gets a berth at the quay.",
            "Every boat of the guild is given a berth at the quay.",
            "",
        ),
        (
            "Boats in the harbour, barges included, should use the quay for repairs.",
            "All boats in the harbour (including barges) should use the quay for repairs.",
            "",
        ),
        (
            "After a good start the recorder copies the tape into a box.",
            "When the recording has a good start, the recorder copies it into a box, the whole tape.",
            "",
        ),
    ],
)
def test_the_same_in_another_form_is_stated(claim: str, source: str, title: str) -> None:
    assert one(claim, source, title).stance is STATES


@pytest.mark.parametrize(
    ("claim", "why", "uncovered"),
    [
        ("The relay keeps mail for 40 days.", "number", "40"),
        ("A lease lasts 9 hours.", "number", "9"),
        ("The relay keeps mail for 30 hours.", "count", ""),
        ("The relay keeps all mail for 30 days.", "universal", "all"),
        ("Every backup is encrypted.", "universal", "Every"),
        ("Only Postfix sends mail.", "universal", "Only"),
        ("The relay never keeps mail for 30 days.", "denial", None),
        ("The cache grows when load rises.", "opposite", ""),
        ("Workers stop at noon.", "replaced", ""),
        ("The flag `--max-tries` sets how often a job is tried.", None, "max-tries"),
        ("The server speaks HTTP/2.", None, "HTTP/2"),
        ("For sessions we use MySQL.", None, "MySQL"),
    ],
)
def test_what_differs_in_one_word_that_matters_is_only_spoken_of(
    claim: str, why: str | None, uncovered: str | None
) -> None:
    found = one(claim)
    assert found.stance in (SPEAKS, SILENT)
    assert why is None or found.why == why
    assert uncovered is None or found.uncovered == ((uncovered,) if uncovered else ())


@pytest.mark.parametrize(
    "claim",
    ["Tomatoes need much sun in summer.", "The committee meets in Vienna.", "Parcels travel by train."],
)
def test_a_source_about_something_else_is_silent(claim: str) -> None:
    found = one(claim)
    assert found.stance is SILENT
    assert found.missing


@pytest.mark.parametrize(
    "lie",
    [
        "it drops spam at once",
        "nobody may read it",
        "all of it goes to the board",
    ],
)
@pytest.mark.parametrize(
    "joint", [", and {}.", "; {}.", " - {}.", ". {}.", ", which means that {}.", " ({})."]
)
def test_a_clause_that_rides_on_a_true_sentence_is_held_by_itself(joint: str, lie: str) -> None:
    claim = "The relay keeps mail for 30 days" + joint.format(lie)
    first, *riding = held(claim)
    assert first.stance is STATES
    assert riding
    assert all(each.stance is not STATES for each in riding)


def test_two_true_clauses_are_both_stated() -> None:
    assert [each.stance for each in held("Workers restart at noon, and a lease lasts two hours.")] == [
        STATES
    ] * 2


@pytest.mark.parametrize("turned", ["{}, which is wrong.", "It is not so that {}.", "Nobody says that {}."])
def test_what_a_source_denies_it_does_not_state(turned: str) -> None:
    said = "the relay keeps mail for 30 days"
    assert one(f"The {said[4:]}.", turned.format(said)).stance is not STATES


@pytest.mark.parametrize(
    "denied",
    [
        "do _not_ keep",
        "do __not__ keep",
        "_never_ keep",
        "do **_not_** keep",
        "don&#39;t keep",
        "don´t keep",
        "don`t keep",
        "donʼt keep",
        "do&nbsp;not keep",
        "do n\u00adot keep",
        "do [not](why.md) keep",
        "do (not) keep",
        "do not\nkeep",
        "don't, as of May, keep",
        "do not, it turned out, keep",
        "keep everything but",
        "keep anything except",
    ],
)
def test_a_denial_is_one_however_it_is_written(denied: str) -> None:
    source = f"Guests pay at the gate. We {denied} mail of guests in the old barn. The barn has two doors."
    assert one("We keep mail of guests in the old barn.", source).stance is not STATES


def test_what_contradicts_a_statement_refutes_that_one() -> None:
    claim = "Backups are encrypted. A lease lasts three hours."
    backups, lease = stances(claim, SourceText(TEXT), contradictions(claim, TEXT))
    assert backups.stance is STATES
    assert lease.stance is Stance.REFUTES
    assert lease.why


def test_words_that_stand_apart_state_nothing_together() -> None:
    """A long text has every word somewhere."""
    words = ("Workers", "Restart", "Queue", "Noon", "Nightly")
    apart = " ".join(f"{word} was seen in the harbour." for word in words)
    assert one("Workers restart the nightly queue at noon.", apart).stance is not STATES


@pytest.mark.parametrize("claim", ["", " ", "...", "of the and", "\x00", "\udcff"])
@pytest.mark.parametrize("source", ["", TEXT])
def test_what_says_nothing_has_no_statement(claim: str, source: str) -> None:
    assert all(each.stance is SILENT for each in held(claim, source))


words = st.sampled_from(
    [
        *TEXT.split(),
        "not",
        "all",
        "(",
        ")",
        ";",
        "\n",
        "- ",
        "\x00",
        "\udcff",
        "3,000",
        "1e5",
        "¹",
        "K8s",
        "İ",
    ]
)
texts = st.lists(words, max_size=40).map(" ".join) | st.text(max_size=120)


@given(texts, texts, st.text(max_size=30))
@example("Amazon block relay", "The The The block relay", "")  # what opens it may be missing, no name may
def test_any_text_can_be_held_against_any_other(claim: str, source: str, title: str) -> None:
    at = 0
    for each in held(claim, source, title):
        assert at <= each.start < each.end <= len(claim)
        assert 0 <= each.score <= 1
        assert max(len(each.missing), len(each.uncovered)) <= MOST_WORDS
        assert each.place is None or 0 <= each.place[0] < each.place[1] <= len(source)
        assert each.stance is not STATES or not (each.why or each.uncovered)
        at = each.end


@given(texts)
def test_one_more_text_never_takes_a_name_or_number_away(source: str) -> None:
    """What is uncovered is nowhere in the source."""
    for each in held("Postfix keeps 30 mails in K8s for 40 days.", source):
        assert not {word.lower() for word in each.uncovered} & {
            word.strip(".,").lower() for word in source.split()
        }


@pytest.mark.parametrize(
    "source",
    [
        "the relay keeps mail for 30 days and " * 5_000,  # one endless sentence
        "- the relay keeps mail\n" * 2_500,
        "- item %d of the list\n" * 2_500,
        "30 days " * 15_000,
        "relay. " * 15_000,
        "Relay Keeps Mail " * 7_500,
        "relay-keeps-mail " * 5_000,
        "not " * 15_000,
        ("relay? " * 70 + "relay " * 80) * 60,
        "(" * 75_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_huge_page_is_held_in_linear_time(source: str) -> None:
    with given_up_after(2):
        found = one("The relay keeps mail for 30 days, says the relay.", source)
    assert found.place is None or found.place[1] <= len(source)
    assert LONGEST < len(source)


def test_of_a_long_list_so_many_lines_are_looked_at_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement was held against every line that shares a word with it: half a minute for a claim of many."""
    looked = 0
    within = SourceText.within

    def counted(self: SourceText, first: int, last: int) -> tuple[Token, ...]:
        nonlocal looked
        looked += 1
        return within(self, first, last)

    source = SourceText("Fees are not paid. " * 5_000)
    monkeypatch.setattr(SourceText, "within", counted)
    (found,) = stances("Fees are paid.", source)
    assert (found.stance is STATES, found.why) == (False, "denial")
    assert looked < 1_000


def test_a_huge_claim_is_held_in_linear_time() -> None:
    source = SourceText(TEXT * 50)
    with given_up_after(20):
        for claim in ("relay " * 1_300, "The relay keeps mail; " * 370, "- a relay keeps\n" * 500):
            stances(claim, source)


@pytest.mark.parametrize(
    ("claim", "source", "why"),
    [
        ("Nightly copies are encrypted.", "Nightly copies may be encrypted.", "possible"),
        ("The gateway listens on port 8080.", "The gateway listened on port 8080 until 2019.", "former"),
        ("The archive is hosted in Lyon.", "The archive was formerly hosted in Lyon.", "former"),
        ("We write a report of each backlog.", "We used to write a report of each backlog.", "former"),
        ("The relay loses mail.", "Critics claimed the relay loses mail.", "reported"),
    ],
)
def test_what_is_said_only_as_possible_or_former_or_reported_is_not_stated(
    claim: str, source: str, why: str
) -> None:
    found = one(claim, source)
    assert (found.stance, found.why) == (SPEAKS, why)
    assert one(source, source).stance is STATES  # said in the same way, it is


def test_what_something_is_used_to_do_it_still_does() -> None:
    found = one("The job restarts idle workers.", "The job is used to restart idle workers.")
    assert (found.stance, found.why) == (STATES, "")


def test_a_number_is_looked_for_where_it_stands() -> None:
    text = "A relay empties its cache.\n\nIt is kept in Lyon.\n\nThe cache is one of 24 to 48 hours."
    found = one("A relay empties its cache within 24 to 48 hours.", text)
    assert found.place is not None
    assert text[slice(*found.place)] == "The cache is one of 24 to 48 hours."


def test_a_number_of_a_sentence_that_says_nothing_of_it_is_not_its_own() -> None:
    text = "A lease lasts two hours. Workers restart at noon."
    found = one("Workers restart at noon after two hours.", text)
    assert (found.stance, found.why) == (SPEAKS, "stray")
    both = "Workers restart at noon. Each restart of one takes two hours."
    assert one("Restarts of workers take two hours.", both).why == ""


PLAIN_TEXT = "The service stores names in plain text."
ASKING = (
    "The service stores names in plain text? No, it never does.",
    "**Does the service store names in plain text?** No.",
    'Q: "Does the service store names in plain text?" asked the auditor. It does not.',
    "(Does the service store names in plain text?) No.",
    "## Does the service store names in plain text?\n\nThe service stores names as hashes.",
    "- Service stores names in plain text? No\n- Service signs mail? Yes",
    "| Service stores names in plain text? | No |\n| Service signs mail? | Yes |",
    "May the service store names in plain text？ No.",
    "The service stores names in plain text\nand nowhere else? No.",
    "Is it so that the service, " + "as some of its users feared, " * 18 + "stores names in plain text? No.",
    "The service stores names. In plain text? No.",
    "# The service stores names\n\nIt is so.\n\n# In plain text?\n\nNo.",
    "Which service stores names in plain text?No, none does.",
)
SAYING = (
    "How are names kept? The service stores names in plain text.",
    "Does the service store names in plain text? Yes: the service stores names in plain text.",
    "The service stores names in plain text. Should it hash them?",
    "The service stores names in plain text (https://docs.example/names?sort=no).",
    "Is it safe?\nThe service stores names in plain text.",
    "The `names?` of the service: it stores names in plain text.",
)


def test_what_a_source_asks_it_does_not_state() -> None:
    for source in ASKING:
        assert one(PLAIN_TEXT, source).stance is SILENT, source
    for source in SAYING:
        assert one(PLAIN_TEXT, source).stance is STATES, source
    assert one(PLAIN_TEXT, "It stores names as hashes.", "Does the service use plain text?").stance is SILENT
    assert one("The relay keeps mail.", "It keeps mail.", "What is the relay?").stance is STATES


def test_a_subject_that_the_source_never_names_is_not_covered() -> None:
    found = one("Exim sends mail on every 15 minutes.")
    assert found.stance is not STATES
    assert found.uncovered == ("Exim",)


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Kafka uses invoices for us.", "We use Kafka for invoices."),
        ("The billing team notifies the ledger.", "The ledger notifies the billing team each night."),
        ("The ledger is notified by the billing team.", "The ledger notifies the billing team each night."),
        ("The pump is started by the valve.", "The pump starts the valve at dawn."),
    ],
)
def test_who_does_it_and_to_whom_it_is_done_are_not_exchanged(claim: str, source: str) -> None:
    assert (one(claim, source).stance, one(claim, source).why) == (SPEAKS, "roles")


@pytest.mark.parametrize(
    ("claim", "other"),
    [
        ("The tide moves sand from {} into {}.", ("Havn", "Strand")),
        ("Each {} has two {}.", ("sluice", "pump")),
        ("The {} mirrors the {}.", ("annex", "hall")),
        ("The left {} depends on the {}.", ("lock", "weir")),
        ("In the last race {} wins against {} by far.", ("Alba", "Brio")),
        ("Unlike the {}, the {} is shut at night.", ("lock", "weir")),
        ("We keep {} logs for {} days.", ("3", "5")),
    ],
)
def test_two_things_are_not_in_each_others_place(claim: str, other: tuple[str, str]) -> None:
    said, source = claim.format(*other), claim.format(*reversed(other))
    assert one(said, source).stance is not STATES
    assert one(said, said).stance is STATES
    assert one(said, f"{said} {source}").stance is STATES  # where it says both


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("We use Redis with Kafka for jobs.", "We use Kafka with Redis for jobs."),
        ("The port of the hall is 8080.", "8080 is the port of the hall."),
        ("The sluice is shut in Berlin in July.", "The sluice is shut in July in Berlin."),
        ("On Friday the pumps run in Havn.", "In Havn the pumps run on Friday."),
        ("The old hall differs from the new annex.", "The new annex differs from the old hall."),
        ("The gates and the weirs are painted in May.", "The weirs and the gates are painted in May."),
        ("The valve starts the pump at dawn.", "The pump is started by the valve at dawn."),
        ("Invoices are kept in Kafka by the ledger.", "The ledger keeps invoices in Kafka."),
    ],
)
def test_what_may_change_places_says_the_same(claim: str, source: str) -> None:
    assert one(claim, source).stance is STATES
    assert one(source, claim).stance is STATES


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The queue blocks callers.", TEXT),
        ("The nightly export runs on Sunday.", TEXT),
        ("Backups are not encrypted.", TEXT),
        ("The gateway retries failed payments.", "The gateway does not retry failed payments."),
        ("Workers do not share a cache.", "Workers share a queue, a cache and a lock."),
        ("The crane can lift boats.", "No. The crane cannot lift boats, as its motor is too weak."),
        (
            "Rent rose in May, but they do not expect berth fees to rise in the autumn.",
            "We expect berth fees to rise in the autumn, as they did last year.",
        ),
    ],
)
def test_what_one_of_the_two_denies_is_refuted(claim: str, source: str) -> None:
    assert (REFUTES, "denied") in {(held.stance, held.why) for held in stances(claim, SourceText(source))}
    assert REFUTES not in {held.stance for held in stances(source, SourceText(source))}


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Logs are not kept for longer than 30 days.", "Logs are kept for 30 days."),  # a limit
        ("The depot does not take boats over 12 m.", "The depot takes boats of up to 12 m."),
        ("Workers do not write to the ledger.", "Only the importer writes to the ledger; workers read it."),
        ("We did not choose Kafka.", "We chose NATS over Kafka."),
        ("Guests cannot comment.", "Members can comment; guests read."),
        ("Guests cannot comment.", "Members can comment. Guests read."),
        ("On a terminal it shows them.", "It shows three tokens, or writes them without a terminal."),
        ("No claim gives a role or a right.", "Nothing is made. Claims give no role and no right."),
        ("Boats are not insured.", "The depot prevents that boats are insured."),  # denied by its verb
        ("Fees rise in May.", "No fees are due. Fees rise in May."),  # said elsewhere
    ],
)
def test_less_than_the_whole_is_denied(claim: str, source: str) -> None:
    assert all(held.stance is not REFUTES for held in stances(claim, SourceText(source)))


@pytest.mark.parametrize(
    ("claim", "source", "why"),
    [
        ("Mara leads the harbour office.", "Jonas leads the harbour office.", "replaced"),
        ("Postgres is used for the ledger.", "MySQL is used for the ledger.", "replaced"),
        ("Levels will be below those of May.", "We expect levels above those of May.", "opposite"),
        ("Version 3 dropped support for tugs.", "Version 3 added support for tugs.", "opposite"),
        (
            "Mara chairs the guild.",
            "The guild meets in May. Its chair is Jonas; Mara keeps the books.",
            "bystander",
        ),
        (
            "Mara Lind wrote the runbook.",
            "The runbook is in the folder. Mara Lind used it in May.",
            "bystander",
        ),
        (
            "Insert the battery after the card.",
            "First insert the battery, and the card behind it.",
            "relation",
        ),
        ("Leeds has more winches than York.", "There are 12 winches in Leeds and 3 in York.", "relation"),
        (
            "The fee is the same for cars and boats.",
            "The fee is 5 euros for cars and 9 for boats.",
            "relation",
        ),
        (
            "The tower is the oldest house in town.",
            "The tower is the second-oldest house in town.",
            "relation",
        ),
        (
            "The tower is the oldest house in town.",
            "The tower is one of the oldest houses in town.",
            "relation",
        ),
        (
            "The show closes at the end of June.",
            "Instead of closing at the end of June, it goes on.",
            "passed over",
        ),
        ("Bats are blind.", "It is a widespread misconception that bats are blind.", "reported"),
    ],
)
def test_what_sets_things_otherwise_is_not_stated(claim: str, source: str, why: str) -> None:
    found = one(claim, source)
    assert (found.stance in (SPEAKS, SILENT), found.why) == (True, why)
    assert {held.stance for held in stances(source, SourceText(source))} == {STATES}


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Mara leads the harbour office.", "She leads the harbour office."),  # who may be Mara
        ("Additionally, the pump clears the pipes.", "Jonas says that the pump clears the pipes."),
        ("Card payments take over 5 seconds.", "Card payments take more than 5 seconds."),
        (
            "Only the harbour office opens the lock.",
            "The lock is opened by the harbour office and by no one else.",
        ),
        ("Fees are 20 euros at most.", "Fees are no more than 20 euros."),
    ],
)
def test_what_is_set_alike_has_no_such_reason(claim: str, source: str) -> None:
    reasons = {"subject", "opposite", "bystander", "relation", "passed over", "universal", "denial"}
    assert one(claim, source).why not in reasons


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("We prefer Redis over Memcached for sessions.", "We prefer Memcached over Redis for sessions."),
        ("We use tabs instead of spaces.", "We use spaces rather than tabs in all files."),
        (
            "The team alerts on causes over symptoms.",
            "The team alerts on symptoms over causes, as others do.",
        ),
    ],
)
def test_what_is_preferred_is_not_what_it_is_preferred_to(claim: str, source: str) -> None:
    assert (one(claim, source).stance, one(claim, source).why) == (SPEAKS, "exchanged")
    assert one(source, source).stance is STATES


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        (
            "Sessions are kept in Redis and not in Memcached.",
            "Sessions are kept in Memcached and not in Redis.",
        ),
        (
            "Harbour winches can't be run beside the crane.",
            "Although it is not our primary use-case Harbour winches can run beside the crane.",
        ),
        ("PRs need two approvals unless they touch docs.", "PRs need two approvals only if they touch docs."),
        ("PRs need two approvals if they touch docs.", "PRs need two approvals unless they touch docs."),
    ],
)
def test_as_many_denials_are_not_the_same_denial(claim: str, source: str) -> None:
    whys = {held.why for held in stances(claim, SourceText(source)) if held.stance is not STATES}
    assert whys & {"denial", "denied"}
    assert {held.stance for held in stances(source, SourceText(source))} == {STATES}


def test_what_is_preferred_may_be_said_in_other_words() -> None:
    assert (
        one("We use spaces over tabs in files.", "We use spaces rather than tabs in files.").stance is STATES
    )
    # Bounds and places prefer nothing.
    assert one("Links over 10 GB go to the mirror.", "To the mirror go links over 10 GB.").why != "exchanged"


@pytest.mark.parametrize(
    "claim",
    [
        "The billing team is notified by the ledger each night.",
        "Each night the ledger notifies the billing team.",
        "We decided that the ledger notifies the billing team each night.",
    ],
)
def test_another_voice_exchanges_nothing(claim: str) -> None:
    assert one(claim, "The ledger notifies the billing team each night.").stance is STATES


@pytest.mark.parametrize(("claim", "source"), [(0, 1), (1, 0)])
def test_what_stops_is_stopped(claim: int, source: int) -> None:
    said = ("A winch stops when its cable is slack.", "When its cable is slack the winch is stopped.")
    assert one(said[claim], said[source]).stance is STATES


@pytest.mark.parametrize("frame", ["We want a sluice", "The team hopes for a sluice", "I wish for a sluice"])
def test_a_wish_is_no_fact(frame: str) -> None:
    source = f"{frame} that blocks the tide."
    found = one("The sluice blocks the tide.", source)
    assert (found.stance, found.why) == (SPEAKS, "possible")
    assert one(source, source).stance is STATES


@pytest.mark.parametrize(
    "claim",
    [
        "The left sluice is open while the right sluice is shut.",
        "The upper basin is full, and the lower basin is empty.",
    ],
)
def test_opposites_exchanged_between_two_clauses_are_not_said(claim: str) -> None:
    one_way = claim
    pairs = (("open", "shut"), ("full", "empty"))
    for first, second in pairs:
        one_way = one_way.replace(first, "#").replace(second, first).replace("#", second)
    assert {each.stance for each in held(claim, one_way)} == {SPEAKS}
    assert {each.stance for each in held(claim, claim)} == {STATES}


@pytest.mark.parametrize(
    "frame", ["It is a rumour that the", "The intern dreamt that the", "Gnomes say that the"]
)
def test_what_is_said_of_a_true_sentence_must_be_there_too(frame: str) -> None:
    found = one(f"{frame} ledger notifies the billing team.", "The ledger notifies the billing team.")
    assert (found.stance, found.why) == (SPEAKS, "framed")


def test_aspects_that_are_told_apart_frame_nothing() -> None:
    source = "There are parts of the ledger that do not balance."
    assert one("There are aspects of the ledger that do not balance.", source).why == ""


@pytest.mark.parametrize(
    ("claim", "source", "stance"),
    [
        ("The lease lasts half an hour.", "The lease lasts 30 minutes.", STATES),
        ("The lease lasts 30 minutes.", "The lease lasts half an hour.", STATES),
        ("The lease lasts one hour.", "The lease lasts an hour.", STATES),
        ("The lease lasts an hour.", "The lease lasts half an hour.", SPEAKS),
        ("The lease lasts for a week.", "The lease lasts for a day.", SPEAKS),
    ],
)
def test_a_span_of_time_is_as_long_as_it_is_however_it_is_written(
    claim: str, source: str, stance: Stance
) -> None:
    assert one(claim, source).stance is stance


SIGNED = (
    "Sessions live for 24 hours. Uploads have at most 25 MB. The pool has 2 thousand rows. Jobs run < 5 minutes. \
Half a percent is 0.5 per cent. It costs 40 dollars."
)


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("Sessions live for 24 hours.", STATES),
        ("Sessions live for 24h.", STATES),
        ("Sessions live for <24 hours.", SPEAKS),
        ("Sessions live for > 24 hours.", SPEAKS),
        ("Sessions live for \N{GREATER-THAN OR EQUAL TO}24 hours.", SPEAKS),
        ("Sessions live for -24 hours.", SPEAKS),
        ("Sessions live for .24 hours.", SPEAKS),
        ("Sessions live for 24k hours.", SPEAKS),
        ("Sessions live for 24bn hours.", SPEAKS),
        ("Sessions live for v24 hours.", SPEAKS),
        ("Sessions live for 24+ hours.", SPEAKS),
        ("Sessions live for minus 24 hours.", SPEAKS),
        ("Sessions live for \N{EN DASH}24 hours.", SPEAKS),
        ("Sessions live for $24 hours.", SPEAKS),
        ("Sessions live for 24% hours.", SPEAKS),
        ("Uploads have at most 25 Mb.", SPEAKS),
        ("Uploads have at most 25 k MB.", SPEAKS),
        ("Half a percent is 0.5%.", STATES),
        ("It costs $40.", STATES),
        ("It costs \N{EURO SIGN}40.", SPEAKS),
        ("Uploads have <= 25 MB.", STATES),
        ("Jobs run 5 minutes.", SPEAKS),
        ("Jobs run less than 5 minutes.", STATES),
        ("The pool has 2k rows.", STATES),
    ],
)
def test_a_sign_at_a_number_makes_another_one(claim: str, stance: Stance) -> None:
    found = one(claim, SIGNED)
    assert found.stance is stance, (found.why, found.score)
    assert stance is STATES or found.why == "sign"


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("False: a lease lasts two hours.", "label"),
        ("Passwords leaked: a lease lasts two hours.", "label"),
        ("Rejected: a lease lasts two hours, and backups are encrypted.", "label"),
        ("Formerly a lease lasted two hours.", "former"),
        ("Formerly, a lease lasted two hours.", "label"),
        ("[rejected] A lease lasts two hours.", "label"),
        ("A lease lasts two hours (false).", "label"),
        ("No longer: a lease lasts two hours.", "label"),
        ("Isn't so: a lease lasts two hours.", "label"),
        ("The record falsely claims a lease lasts two hours.", "label"),
        ("- [ ] A lease lasts two hours.", "label"),
        ("Does a lease last two hours?!", "asks"),
        ("Does a lease last two hours?", "asks"),
        ("Note: a lease lasts two hours.", ""),
        ("Lease: it lasts two hours.", ""),
    ],
)
def test_what_frames_a_sentence_is_part_of_it(claim: str, why: str) -> None:
    for found in held(claim):
        assert (found.stance is STATES, found.why) == (not why, why)


@pytest.mark.parametrize(
    ("label", "states"),
    [
        *(
            (label, True)
            for label in ("Porto (shop)", "Porto (service)", "Porto (cache server)", "Porto (Braga)")
        ),
        *((label, True) for label in ("Porto shop (team-project)", "shop (Porto)")),
        *((label, False) for label in ("Porto (scam)", "Porto (illegal shop)", "Porto (shop opens at ten)")),
        *((label, False) for label in ("Porto (shop) (scam)", "Porto scam (shop)", "Porto (Braga shop)")),
        *((label, False) for label in ("Porto (gun shop)", "Porto (shop [scam])", "Porto (dangerous)")),
    ],
)
def test_what_is_said_in_brackets_behind_a_name_is_its_kind_or_has_to_be_stated(
    label: str, states: bool
) -> None:
    source = "The Porto shop of Braga opens at nine.\n\nThe Braga shop opens at ten."
    found = one(f"{label}: The Porto shop of Braga opens at nine.", source)
    assert (found.stance is STATES, found.why) == (states, "" if states else "label")


def test_a_statement_too_long_to_be_looked_at_is_unknown() -> None:
    towns = ", ".join(f"Town{number}" for number in range(90))
    source = f"Parcels go to {towns}. Letters go to Berlin."
    long = one(f"Parcels go to {towns}, Gotham and Narnia.", source)
    assert (long.stance, long.why) == (Stance.UNKNOWN, "long")
    assert one("Letters go to Berlin.", source).stance is STATES
    clauses = held(f"Parcels go to {towns}, and letters go to Berlin.", source)
    assert [found.stance for found in clauses] == [Stance.UNKNOWN, STATES]
