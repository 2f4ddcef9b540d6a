"""Is the claim in a language that the checks can read? In another one no hedge would be seen and no negation: whatever
would vouch for it, a person reads it (ADR-0070).
"""

from __future__ import annotations

from collections.abc import Iterator

from vouchgate.ingest.check import Check, ReadClaim
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.language.terms import ENGLISH, is_plain_english, language_of

CHECK = "language"
CODE = "language_unread"


def judge(read: ReadClaim) -> Iterator[Finding]:
    """UNKNOWN `language_unread` for a claim in such a language, which `facts["language"]` names; else nothing. A policy
    of before there were other languages asks for none."""
    text, known = read.claim.content, read.policy.lexicon.languages
    if not known or is_plain_english(text):
        return
    told = language_of(text, "unknown")
    if told != ENGLISH and all(told != language.name.lower() for language in known.values()):
        named = "a language" if told == "unknown" else f"{told.capitalize()}"
        message = f"The claim is in {named}, for which there are no word lists: a person has to read it."
        yield Finding(
            check=CHECK, verdict=Verdict.UNKNOWN, code=CODE, message=message, facts={"language": told}
        )


CHECKS = (Check(name=CHECK, title="Language", codes={CODE: Verdict.UNKNOWN}, order=13, judge=judge),)
