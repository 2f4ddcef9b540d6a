"""A user's turn shows what that user wants, likes, decided or said, and nothing else; a tool's output nothing of that
kind. Each row is a claim, whose turn it is, and the turn."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from vouchgate.ingest.check import NOTHING_NEAR
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import parse_citation
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import Decision, Label, Tier
from vouchgate.ingest.claims.source import Found, Held, Stance, Standing
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import Examined, examine, inspect
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.support.holding import hold_again
from vouchgate.ingest.support.turns import asserted

CITE = "record:rec_0123456789abcdef0123456789abcdef"
POLICY = load_policy()
STORING = POLICY.model_copy(update={"spoken_of": "store"})
DETECTOR = HedgeDetector(POLICY.lexicon)

# fmt: off
SHOWN = (
    ('The user likes short answers.', 'ann', 'Hi! I like short answers, so keep it brief please.'),
    ("The user prefers tabs.", "ada", "I prefer tabs instead of spaces."),
    ('The user prefers tabs.', 'ann', 'I prefer tabs over spaces.'),
    ('Ann prefers tabs over spaces.', 'ann', 'I prefer tabs over spaces.'),
    ('User wants weekly summaries on Monday.', 'ann', 'I want weekly summaries on Monday.'),
    ('The user does not want email notifications.', 'ann', "I don't want email notifications."),
    ('The user decided to use PostgreSQL for orders.', 'ann', "OK, I've decided to use PostgreSQL for orders."),
    ('Ann hates dark mode.', 'ann', 'Honestly I hate dark mode.'),
    ("The user's favourite editor is Helix.", 'ann', 'My favourite editor is Helix.'),
    ('Ann said that the API limit is 500.', 'ann', 'The API limit is 500.'),
    ('The user said the demo moved to Thursday.', 'ann', 'The demo moved to Thursday.'),
    ('The user would like replies in German.', 'ann', "I'd like replies in German."),
    ('The user avoids meetings before 10.', 'ann', 'I avoid meetings before 10.'),
    ('The user prefers metric units for recipes.', 'ann', 'For recipes, I prefer metric units.'),
    ('The user never wants autoplay.', 'ann', 'I never want autoplay.'),
    ('The user chose the blue theme.', 'ann', "Let's see... I chose the blue theme."),
    ('Ann decided against Kubernetes for the pilot.', 'ann', 'I decided against Kubernetes for the pilot.'),
    ('The user dislikes long meetings.', 'ann', 'I dislike long meetings.'),
    ('The user wants the tests to run on PostgreSQL.', 'ann', 'I want the tests to run on PostgreSQL too.'),
    ('The user prefers Vim to Emacs.', 'ann', 'I prefer Vim to Emacs.'),
    ('The user needs vegetarian options.', 'ann', 'I need vegetarian options.'),
    ('The user prefers to be called Annie.', 'ann', 'I prefer to be called Annie.'),
    ('The user wants no emojis in commit messages.', 'ann', 'I want no emojis in commit messages.'),
    ('Ann wants releases only on Tuesdays.', 'Ann', 'I want releases only on Tuesdays.'),
    ('The user enjoys reading science fiction.', 'ann', 'I enjoy reading science fiction.'),
    ('User prefers window seats on long flights', 'ann', 'I always prefer window seats on long flights'),
    ('The user prefers pnpm. The user dislikes yarn.', 'ann', 'I prefer pnpm, and I dislike yarn.'),
    ('The user prefers pnpm and dislikes yarn.', 'ann', 'I prefer pnpm and dislike yarn.'),
    ('The user does not like surprises.', 'ann', 'I do not like surprises. Thanks for asking.'),
    ('The user prefers dark roast coffee.', 'dora', 'I prefer dark roast coffee, thanks.'),
    ('Dora prefers dark roast coffee.', 'dora', 'Well, I really prefer dark roast coffee.'),
    ('The user wants invoices sent to accounting.', 'u_8831', 'I want invoices sent to accounting.'),
    ("The user doesn't like phone calls.", 'dora', "I don't like phone calls. Mail is fine."),
    ('The user needs a wheelchair ramp.', 'dora', 'I need a wheelchair ramp, please book accordingly.'),
    ('The user prefers trains over planes.', 'dora', 'I prefer trains over planes because of the climate.'),
    ('Dora said she works at the harbour.', 'dora', 'I work at the harbour.'),
    ('The user said the licence expires in March.', 'dora', 'The licence expires in March, by the way.'),
    ('The user picked the annual plan.', 'dora', 'I picked the annual plan.'),
    ('The user hates pop-ups.', 'dora', 'I hate pop-ups!'),
    ('The user wants backups every night.', 'dora', 'I want backups every night.'),
    ('The user would like a summary at the end.', 'dora', 'I would like a summary at the end.'),
    ("The user prefers coffee to tea.", "kim", "Hi, I prefer coffee to tea, thanks!"),
    ("The user loves spicy food.", "kim", "I love spicy food, by the way."),
    ("The user prefers short variable names.", "kim", "I prefer short variable names because they are easy to read."),
    ("Kim said that she is allergic to nuts.", "kim", "I'm allergic to nuts."),
    ("Kim said that they have two children.", "kim", "I have two children."),
    ("Kim said she does not eat meat.", "kim", "I don't eat meat."),
    ("The user prefers trains and dislikes planes.", "kim", "I prefer trains and I dislike planes."),
    ("The user likes Java, Go and Rust.", "kim", "I like Java, Go and Rust."),
    ("The user would like their invoices by post.", "kim", "I would like my invoices by post."),
    ("The user wants no meetings on Fridays.", "kim", "I want no meetings on Fridays."),
    ("The user prefers metric units.", "kim", "Hey Claude, I prefer metric units."),
    ("The user dislikes emojis.", "kim", "That looks good. I dislike emojis, though."),
    ("The user avoids gluten.", "lea", "I avoid gluten, so keep recipes simple."),
    ("The user prefers walking.", "lea", "I prefer walking over driving."),
    ("The user's favourite season is autumn.", "lea", "My favourite season is autumn, by the way."),
    ("Lea said that her sister lives in Bergen.", "lea", "My sister lives in Bergen."),
    ("The user wrote that the build fails on Windows.", "lea", "The build fails on Windows."),
    ("The user hates surprises.", "lea", "I hate surprises. I like plans."),
)
# What waits although the turn says it: a verb of another form, a spelling of another country, a part of what "and" or
# "to" joins ("gin and tonic", "visits to museums"), a sentence of which a part is not understood.
MISSED = (
    ("The user prefers tabs.", "ada", "I prefer tabs to spaces."),
    ('The user loves hiking.', 'ann', 'I love hiking and climbing.'),
    ('The user decided on the Leipzig office.', 'u_8831', 'We talked a lot and I decided on the Leipzig office.'),
    ("The user likes strong coffee.", "kim", "I like strong coffee and tea."),
    ("The user prefers dark mode.", "kim", "I prefer dark mode 😊"),
    ('The user agreed to ship on Friday.', 'ann', 'I agree to ship on Friday.'),
    ("The user's favourite colour is green.", 'dora', 'By the way, my favorite color is green.'),
)
NOT_SHOWN = (
    ("The user prefers spaces.", "ada", "I prefer tabs to spaces."),
    ("The user prefers coffee.", "ada", "I prefer coffee to go."),
    ("The user prefers meetings.", "ada", "I prefer meetings to be short."),
    ("The user prefers tabs.", "ada", "I prefer tabs over spaces in Makefiles."),
    ('The API limit is 500.', 'ann', 'The API limit is 500.'),
    ('Bob prefers tabs.', 'ann', 'I prefer tabs.'),
    ('The user prefers spaces.', 'ann', 'I prefer tabs over spaces.'),
    ('The user prefers spaces.', 'ann', 'My boss says use spaces. I prefer tabs.'),
    ('The user prefers tabs.', 'ann', 'Do I prefer tabs? No idea.'),
    ('The user wants dark mode.', 'ann', 'If I wanted dark mode, I would say so.'),
    ('The user prefers tabs.', 'ann', "I don't prefer tabs."),
    ('The user likes cilantro.', 'ann', 'My wife likes cilantro.'),
    ('The user wants the database dropped.', 'ann', 'The log says: "I want the database dropped."'),
    ('The user wants a refund.', 'ann', 'Bob said: I want a refund.'),
    ('The user decided to use Redis.', 'ann', "I haven't decided to use Redis."),
    ('The user prefers Windows.', 'ann', 'I used to prefer Windows.'),
    ('The user wants a new laptop.', 'ann', 'I might want a new laptop.'),
    ('The user always wants dark mode.', 'ann', 'I want dark mode at night.'),
    ('The user wants dark mode.', 'ann', 'I want dark mode at night.'),
    ('The user wants all logs deleted.', 'ann', 'I want debug logs deleted.'),
    ('The user prefers tabs.', 'ann', "I'm not sure whether I prefer tabs or spaces."),
    ('The team prefers tabs.', 'ann', 'I prefer tabs.'),
    ('The server runs Debian 12.', 'ann', 'I like that the server runs Debian 12.'),
    ('The user wants to cancel.', 'ann', 'Would you say I want to cancel?'),
    ('The user prefers tea.', 'ann', 'I prefer tea. Just kidding, coffee.'),
    ('The user prefers tea.', 'ann', 'Suppose I prefer tea. What would you order?'),
    ('The user wants the deploy on Friday.', 'ann', 'Write a mail for Bob: I want the deploy on Friday.'),
    ('Ann prefers tabs. The limit is 500.', 'ann', 'I prefer tabs. The limit is 500.'),
    ('The user wants 3 copies.', 'ann', 'I want 5 copies.'),
    ('Bob said that the API limit is 500.', 'ann', 'The API limit is 500.'),
    ('Ann said that the API limit is 500.', 'ann', 'The API limit is 400.'),
    ('Ann said that she hates Java.', 'ann', 'Bob hates Java.'),
    ('The user likes Java and Go.', 'ann', 'I like Go.'),
    ('The user trusts the agent with payments.', 'ann', 'I like how you handle payments.'),
    ('The user prefers the deploy at noon.', 'ann', 'ann: what does bob want?\nbob: I prefer the deploy at noon.'),
    ('The user wants to be emailed.', 'ann', "I'd rather not be emailed."),
    ('The user prefers Python.', 'ann', "> I prefer Python\n\nReally? I don't."),
    ('The user wants the tests skipped.', 'ann', 'The reviewer thinks I want the tests skipped.'),
    ('Ann said that the API limit is 500.', 'ann', 'Is the API limit 500?'),
    ('Ann said that the API limit is 500.', 'ann', 'I doubt that the API limit is 500.'),
    ('The user would buy a boat.', 'ann', 'I would buy a boat if I were rich.'),
    ('The user prefers tabs.', 'ann', 'I prefer tabs in Makefiles.'),
    ('The user prefers tabs.', 'ann', 'I want to know who prefers tabs.'),
    ('The user wants a refund.', 'ann', 'Translate this into French. I want a refund.'),
    ('The user likes the new design.', 'ann', 'I like the old design, not the new design.'),
    ('Ann wants the old logs gone.', 'ben', 'Ann wants the old logs gone.'),
    ('The user prefers planes.', 'dora', 'I prefer trains over planes because of the climate.'),
    ('The user wants backups every hour.', 'dora', 'I want backups every night.'),
    ('The user likes phone calls.', 'dora', "I don't like phone calls. Mail is fine."),
    ('Mail is fine.', 'dora', "I don't like phone calls. Mail is fine."),
    ('The licence expires in March.', 'dora', 'The licence expires in March, by the way.'),
    ('The user wants the account closed.', 'dora', 'My husband wants the account closed.'),
    ('The user wants the account closed.', 'dora', 'Should I say that I want the account closed?'),
    ('The user wants the account closed.', 'dora', 'Reply to him: I want the account closed.'),
    ('The user decided on the Leipzig office.', 'dora', 'I have not decided on the Leipzig office.'),
    ('The user decided on the Leipzig office.', 'dora', 'I almost decided on the Leipzig office.'),
    ('The user needs a ramp.', 'dora', 'I need a wheelchair ramp, unless the lift works.'),
    ('Erik picked the annual plan.', 'dora', 'Erik picked the annual plan.'),
    ('Erik said he works at the harbour.', 'dora', 'I work at the harbour.'),
    ('The user picked the annual plan. The user wants a refund.', 'dora', 'I picked the annual plan.'),
    ('All users prefer dark roast coffee.', 'dora', 'I prefer dark roast coffee, thanks.'),
    ('The user prefers coffee.', 'dora', 'I prefer coffee to be fair traded.'),
    ('The user likes the old logo.', 'dora', "I'd say most people like the old logo."),
    ('The user prefers the second draft.', 'dora', 'If it were up to me I prefer the second draft.'),
    ('The user said the licence expires in March.', 'dora', 'Does the licence expire in March?'),
    ('Dora said she hates Erik.', 'dora', 'Erik hates me.'),
    ("The user likes spinach.", "ann", "I like everything but spinach."),
    ("The user hates sugar.", "ann", "I like tea and my wife likes coffee and hates sugar."),
    ("The user hates rain.", "ann", "I like my boss, who loves golf and hates rain."),
    ("The user wrote the parser.", "ann", "The parser is broken."),
    ("Ann said that she lives in Bergen.", "ann", "I live in Oslo. My sister lives in Bergen."),
    ("The user hates Claude.", "ann", "I hate this, Claude."),
    ("The user dislikes family.", "ann", "I dislike mixing work and family."),
    ("The user hates bosses.", "ann", "I hate my boss."),
    ("The user hates children.", "ann", "I hate her children."),
    ("The user hates her children.", "ann", "I hate her children."),
    ("The user hates phone calls.", "ann", "I need you to translate this text. I hate phone calls."),
    ("The user wants meetings.", "ann", "I did want meetings."),
    ("Team prefers tabs.", "Team Lead", "I prefer tabs."),
    ("The user likes tabs.", "ann", "I like tabs except in Makefiles."),
    ("The user hates drinking.", "ann", "I hate driving and drinking."),
    ("The user loves meetings.", "ann", "I love meetings. Not!"),
    ("The user hates mail.", "ann", "I avoid spam and hate mail."),
    ("The user loves gin.", "ann", "I love gin and tonic."),
    ("The user likes my father.", "ann", "I am like my father."),
    ("The user likes three dogs.", "ann", "I have like three dogs."),
    ("The user prefers meetings.", "ann", "I prefer meetings over Zoom."),
    ("The user does not want tea.", "ann", "I don't always want tea."),
    ("The user never wants autoplay.", "ann", "I don't want autoplay."),
    ("The user wants dogs.", "ann", "I want a dog."),
    ("The user wants tabs.", "ann", "I want tabs. Only in Makefiles, though."),
    ("The user wants a refund.", "ann", "I want a refund. Please rephrase that politely."),
    ("The user likes tea.", "ann", "I like tea, so they say."),
    ("The user avoids the rain.", "ann", "I want Bob to leave and avoid the rain."),
    ("The user hates cold.", "ann", "I hate cold and dark rooms."),
    ("The user needs help.", "ann", "I hate seeing children want toys and need help."),
    ("The user does not want the job.", "ann", "I don't want the job because of the money."),
    ("The user does not prefer tabs.", "ann", "I don't prefer tabs over spaces."),
    ("The user needs little help.", "ann", "I need a little help."),
    ("Ann said to delete the logs.", "ann", "Bob wants to delete the logs."),
    ("Ann said that her sister lives in Bergen.", "ann", "Bob's sister lives in Bergen."),
    ("The user noted the deadline.", "ann", "The deadline is Friday."),
    ("The user mentioned the outage.", "ann", "The outage is over."),
    ("The user wants a raise.", "ann", "My colleague wrote me this\ni want a raise"),
    ("The user likes dogs.", "lea", "I like dogs. (Only small ones.)"),
    ("The user loves the sea.", "lea", "I love the sea, my wife loves the mountains, and I hate both."),
    ("The user prefers bridges.", "lea", "I prefer bridges over water."),
    ("The user needs a doctor.", "lea", "I need a doctor's note."),
    ("The user dislikes the plan.", "lea", "I dislike the plan B."),
    ("The user likes jazz.", "lea", "I like jazz. Said no one ever."),
    ("Lea said that the demo works.", "lea", "I hope the demo works."),
    ("Lea said that the demo works.", "lea", "The demo works, in theory."),
    ("Lea said that she works here and lives in Oslo.", "lea", "I work here. My sister lives in Oslo."),
    ("Lea said that I am late.", "lea", "I am late."),
    ("The user really wants a bike.", "lea", "I want a bike."),
    ("The user wants their mother to call.", "lea", "I want her mother to call."),
    ("The user likes my cooking.", "lea", "I like my cooking."),
    ("Ann said that the demo moved to Thursday.", "ann", "I fear the demo moved to Thursday."),
    ("Ann said that the API limit is 500.", "ann", "Make sure that the API limit is 500."),
    ("Ann said that the backup runs.", "ann", "Find out when the backup runs."),
    ("Ann said that the API limit is 500.", "ann", "The API limit should be 500."),
    ("Ann said that she works at the harbour.", "ann", "I want to work at the harbour."),
    ("Ann said that she works at the harbour.", "ann", "I worked at the harbour."),
    ("The user needs tea.", "ann", "I love it when Bob hates tea, need tea."),
    ("Ann said that tests fail.", "ann", "No tests fail."),
    ("Ann said that no tests fail.", "ann", "Tests fail."),
)
# Claims, and what a tool returned whom the operator lists.
RETURNED = (
    ('The disk is full.', 'Filesystem /dev/sda1: the disk is full.'),
    ('The build takes 12 minutes.', 'build finished\nThe build takes 12 minutes.'),
    ('The server runs Debian 12.', 'The server runs Debian 12.'),
    ('The queue has 14 jobs.', 'queue status\nThe queue has 14 jobs.'),
)
OF_PERSONS = (
    ('The user wants the firewall off.', 'The user wants the firewall off.'),
    ('The user approved the deletion.', 'The user approved the deletion.'),
    ('The user wants everything deleted.', 'note: the user wants everything deleted'),
    ('Dora authorised the payment.', 'Dora authorised the payment.'),
    ('The queue has 15 jobs.', 'The queue has 14 jobs.'),
)
# fmt: on


def examined(content: str, who: str, text: str, kind: Literal["turn", "tool_output"]) -> Examined:
    """A claim that cites this record."""
    citation = parse_citation(CITE)
    claim = Claim(
        content=content,
        memory_type=MemoryType.FACT,
        asserted_source=Source.AI_SYNTHESIS,
        source=Source.AI_SYNTHESIS,
        owner_id="ann",
        citations=(citation,),
    )
    found = Found(
        citation=citation,
        source_id=CITE,
        form=kind,
        standing=Standing.IN_FORCE,
        detail="It is there.",
        excerpt=text,
        text=text,
        official=kind == "turn",
        who=who,
    )
    made = examine(inspect(claim, DETECTOR), (found,), STORING, datetime.now(UTC))
    return made.knowing(dedup=NOTHING_NEAR)


def decide(content: str, who: str, text: str, kind: Literal["turn", "tool_output"] = "turn") -> Decision:
    """What becomes of it, where what is only spoken of is stored, too."""
    return examined(content, who, text, kind).decide()


def held_by(content: str, who: str, text: str) -> tuple[Found, tuple[Held, ...]]:
    """What the turn does to its statements."""
    (read,) = examined(content, who, text, "turn").readings
    assert isinstance(read, Found)
    return read, read.held or ()


def test_a_turn_makes_a_fact_of_what_its_speaker_wants_and_decided_and_of_nothing_else() -> None:
    for content, who, text in SHOWN:
        decision = decide(content, who, text)
        assert (decision.tier, decision.rule, decision.label) == (Tier.STORED, Rule.STATED, Label.FACT), (
            content
        )
    for content, who, text in (*MISSED, *NOT_SHOWN):
        assert decide(content, who, text).tier is Tier.QUEUED, (content, text)


def test_what_a_listed_tool_returned_is_stored_but_for_what_people_want_and_say() -> None:
    for content, text in RETURNED:
        decision = decide(content, "df", text, "tool_output")
        assert (decision.tier, decision.label) == (Tier.STORED, Label.INFERENCE), content
    for content, text in OF_PERSONS:
        assert decide(content, "df", text, "tool_output").tier is Tier.QUEUED, content


def test_what_is_asked_supposed_quoted_or_handed_over_is_blanked_out_in_place() -> None:
    text = "I like tea. Do I? If I like gin, fine. “I like rum.” Bob says I like mud. Reply: I like ale. I like port."
    assert asserted(text).split() == ["I", "like", "tea."]
    assert len(asserted(text)) == len(text)
    assert not asserted("I like tea. Scratch that.").strip()
    for odd in ("", " ", "İI like tea\n\n> no", "I " * 5000, "I like " + "and " * 5000):
        assert len(asserted(odd)) == len(odd)
        decide("The user likes tea.", "a", odd + "x")


def test_statements_are_held_again_as_they_were() -> None:
    text = "I like tea. Do I?"
    read, held = held_by("Ann likes tea. Bob likes gin.", "ann", text)
    assert [(one.stance, one.why) for one in held] == [(Stance.STATES, ""), (Stance.SILENT, "")]
    assert hold_again("Ann likes tea. Bob likes gin.", read, text, "") == held
    assert read.excerpt == text  # people see what was not asserted, too
