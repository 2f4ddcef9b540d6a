"""Which other records a record says that it changes, or is changed by. Pure, and linear in its text.

Three ways are in use: a link of adr-tools or log4brains (`Amends [5. X](0005-x.md)`, `Amended by …`), a sentence that
names the other record together with a verb of changing ("This relaxes ADR-8"), and a record whose context recalls an
earlier one and whose decision or consequences say that something is "no longer" so. Who "supersedes" ends the other
record, which is read elsewhere; only what replaces a part of one changes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.sources.git.adr_status import file_number

_MOST = 50  # records that one names in each way
_MOST_NAMING = (
    1_000  # sentences that name another record; a page with more of them is a list, and is not read on
)
_REACH = 80  # characters between a verb and the record that it is about
_SENTENCE = 600  # characters of one sentence that are looked at

# Names a record in prose: by its number after "ADR", by the number that begins a link's text, by the file linked to.
_NAMED = re.compile(
    r"\badrs?[-_ #]{0,2}0{0,8}(?P<named>\d{1,6})\b"
    r"|\[0{0,8}(?P<titled>\d{1,6})\s{0,2}[.:)–—-]\s[^\[\]]{0,200}\]"
    r"|\]\((?:[^()\s#]{0,300}/)?(?P<file>[^()\s#/]{1,200})\.(?:md|markdown|rst|adoc|txt)(?:#[^()\s]{0,200})?\)",
    re.IGNORECASE,
)
_VERBS = {
    "amend": "s|ed|ing",
    "alter": "s|ed|ing",
    "extend": "s|ed|ing",
    "correct": "s|ed|ing",
    "relax": "es|ed|ing",
    "narrow": "s|ed|ing",
    "broaden": "s|ed|ing",
    "loosen": "s|ed|ing",
    "tighten": "s|ed|ing",
    "refin": "e|es|ed|ing",
    "revis": "e|es|ed|ing",
    "revers": "e|es|ed|ing",
    "chang": "e|es|ed|ing",
    "updat": "e|es|ed|ing",
    "adjust": "s|ed|ing",
    "overrid": "e|es|den|ing",
    "modif": "y|ies|ied|ying",
    "clarif": "y|ies|ied|ying",
    "deviat": "e|es|ed|ing",
    "depart": "s|ed|ing",
    "lift": "s|ed|ing",
}
_VERB = "|".join(f"{stem}(?:{ends})?" for stem, ends in _VERBS.items())
# Of these only a part counts here: the whole of a record that is replaced is over.
_PARTLY = (
    r"(?:partly|partially|in part)\s{1,3}(?:supersed|replac|obsolet)(?:e|es|ed|ing)"
    r"|(?:supersed|replac|obsolet)(?:e|es|ed|ing)\s{1,3}(?:in part|partly|partially"
    r"|(?:a |the |some )?parts?\b|sections?\b)"
)
_CHANGING = re.compile(rf"(?<![\w/-])(?:{_VERB}|{_PARTLY})(?![\w/-])", re.IGNORECASE)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being|gets?)\b", re.IGNORECASE)
_BY = re.compile(r"\s{0,3}\W{0,3}\bby\b", re.IGNORECASE)
# "the changes proposed in ADR-3", "as extended": not a verb of this record's.
_NOUN_BEFORE = re.compile(r"\b(?:the|these|those|any|no|as)\s{1,3}$", re.IGNORECASE)
_NOT_SO = re.compile(r"\b(?:not|never|without)\b(?:\s{1,3}\w{1,20}){0,2}\s{1,3}$|n't\s{1,3}$", re.IGNORECASE)

_TURNED = re.compile(
    r"\bno longer\b|\bnot\b[^.]{0,60}\bany ?more\b|\bfrom now on\b|\binstead of\b|\breplac(?:e|es|ed|ing)\b",
    re.IGNORECASE,
)
_RECALLS = re.compile(
    r"\bdeci(?:de|sion)|\bexplain|\bchose\b|\bchosen\b|\badopt|\bintroduc|\bset out\b|\bestablish|\bagreed\b|\bsaid\b"
    r"|\bstates?\b|\bspecif|\bdescrib",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"(?:\d{1,3}[.)]?\s{1,4})?(?:the\s)?(?:context|background|problem|motivation|introduction)", re.IGNORECASE
)
_OUTCOME = re.compile(
    r"(?:\d{1,3}[.)]?\s{1,4})?(?:the\s)?(?:decision|resolution|outcome|consequence|impact)", re.IGNORECASE
)
# `[label]: https://…` and the label in `[text][label]`, which readers do not see.
_DEFINITION = re.compile(r"\s{0,3}\[[^\[\]]{1,200}\]:\s")
_LABEL = re.compile(r"\]\[[^\[\]]{1,200}\]")
_NEW_BLOCK = re.compile(r"\s{0,20}(?:[-*+|>]|\d{1,3}[.)]\s|$)")
_ENDS = re.compile(r"(?<=[^\d][.!?])\s+(?=[\[\"'“(*_A-Z])")


class Ref(NamedTuple):
    """Another record, by the number or by the file name without its ending."""

    number: int | None
    stem: str


_Mention = tuple[int, int, Ref]  # where in a sentence, and of which record


class Links(Frozen):
    """What one record says of others. `changes`: it changes them; `changed_by`: they change it; `recalls`: earlier ones
    that its context recalls, while it decides that something is so no longer."""

    changes: tuple[Ref, ...] = ()
    changed_by: tuple[Ref, ...] = ()
    recalls: tuple[Ref, ...] = ()


def find_links(sections: Sequence[tuple[str, Sequence[str]]]) -> Links:
    """Reads the sections of a page, each a heading and its lines; lines of code begin with a zero character."""
    changes: dict[Ref, None] = {}
    changed_by: dict[Ref, None] = {}
    recalled: dict[Ref, None] = {}
    turned, naming = False, 0
    for heading, lines in sections:
        in_context, in_outcome = _CONTEXT.match(heading), _OUTCOME.match(heading)
        if not in_outcome and not _NAMED.search(" ".join(lines)):
            continue
        for sentence in _sentences(lines):
            named = [(*match.span(), _ref(match)) for match in _NAMED.finditer(sentence)]
            if in_outcome and not turned:
                turned = _TURNED.search(sentence) is not None
            if not named:
                continue
            naming += 1
            if naming > _MOST_NAMING:
                continue
            if in_context and _RECALLS.search(sentence):
                recalled.update(dict.fromkeys(ref for _, _, ref in named))
            _add_changes(sentence, named, changes, changed_by)
    return Links(
        changes=tuple(changes)[:_MOST],
        changed_by=tuple(changed_by)[:_MOST],
        recalls=tuple(recalled)[:_MOST] if turned else (),
    )


def _add_changes(
    sentence: str, named: Sequence[_Mention], changes: dict[Ref, None], changed_by: dict[Ref, None]
) -> None:
    for verb in _CHANGING.finditer(sentence):
        if any(start <= verb.start() < end for start, end, _ in named):
            continue  # a word of the other's title
        before = sentence[max(0, verb.start() - 60) : verb.start()]
        if _NOUN_BEFORE.search(before) or _NOT_SO.search(before):
            continue
        after = [ref for at, _, ref in named if 0 <= at - verb.end() <= _REACH]
        if _BY.match(sentence, verb.end()):
            changed_by.update(dict.fromkeys(after))
        elif after:
            changes.update(dict.fromkeys(after))
        else:  # "ADR-8 is amended"
            changes.update(
                (ref, None)
                for at, _, ref in named
                if 0 < verb.start() - at <= _REACH and _PASSIVE.search(sentence, at, verb.start())
            )


def _ref(match: re.Match[str]) -> Ref:
    number = match["named"] or match["titled"]
    if number:
        return Ref(int(number), "")
    stem = PurePosixPath(match["file"]).name
    number_of_file = file_number(f"{stem}.md")
    return Ref(number_of_file, "" if number_of_file is not None else stem.casefold())


def _sentences(lines: Sequence[str]) -> Iterator[str]:
    """Sentences over line ends; a list item, a table row and a paragraph end one."""
    block: list[str] = []
    for line in (*lines, ""):
        if line.startswith("\x00") or _DEFINITION.match(line):
            continue
        if _NEW_BLOCK.match(line):
            yield from _cut(" ".join(block))
            block = []
        block.append(line.strip())
    yield from _cut(" ".join(block))


def _cut(paragraph: str) -> Iterator[str]:
    for sentence in _ENDS.split(_LABEL.sub("]", paragraph)):
        if sentence.strip():
            yield sentence[:_SENTENCE]
