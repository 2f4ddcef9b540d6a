"""A digest as a mail: text, and the same as HTML, with links that lead to items and decide nothing. Pure.

Claims in it are hostile text. Everything in a header is a number, a word of ours, or an address that was looked at
when it was given; credentials are masked, addresses in claims are no links, and nothing is loaded from anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from html import escape
from urllib.parse import urlsplit

from vouchgate.ingest.checks.secrets import mask, secret_detector
from vouchgate.review.digests.text import DigestFigures, digest_text, has_news, item_address
from vouchgate.review.pages.wording.text import plain_line

MOST_OWNERS_SHOWN = 20  # in one mail, those with most waiting first
_NAME = "Vouchgate"
_POLICY = SMTP.clone(cte_type="7bit")  # not every mail server takes 8 bits
_PAGE = '<!doctype html><html lang="en"><body><div style="white-space: pre-wrap">{}</div></body></html>\n'


def compose(
    digests: Sequence[DigestFigures], *, mail_id: str, to: str, sender: str, page: str, at: datetime
) -> EmailMessage | None:
    """The mail of these owners' digests; None when there is nothing to tell. `to` and `sender` are addresses, `page` is
    that of the review page."""
    told = sorted(
        (_masked(each) for each in digests if has_news(each)), key=lambda each: (-each.waiting, each.owner_id)
    )
    if not told:
        return None
    shown, more = told[:MOST_OWNERS_SHOWN], len(told) - MOST_OWNERS_SHOWN
    parts = []
    for each in shown:
        heading = f"{plain_line(each.owner_id, 100)}\n\n" if len(told) > 1 else ""
        parts.append(heading + digest_text(each, linked=True))
    if more > 0:
        parts.append(f"And {more:,} more of your owners: {page}")
    parts.append(
        f"-- \nA link leads to the item, decides nothing, and needs you signed in.\nThis mail is {mail_id}."
    )
    links = {page, *(item_address(each, item) for each in shown for item in each.first)}
    waiting = sum(each.waiting for each in told)
    subject = "What happened" if not waiting else f"{waiting:,} claim{' waits' if waiting == 1 else 's wait'}"
    return _message(
        "\n\n\n".join(parts), links, subject, mail_id=mail_id, to=to, sender=sender, page=page, at=at
    )


def compose_test(*, mail_id: str, to: str, sender: str, page: str, at: datetime) -> EmailMessage:
    """A mail that says nothing, to see whether one arrives."""
    text = f"Digests of what waits come to this address.\n\nThe review page: {page}"
    return _message(text, {page}, "A test", mail_id=mail_id, to=to, sender=sender, page=page, at=at)


def _message(
    text: str, links: set[str], subject: str, *, mail_id: str, to: str, sender: str, page: str, at: datetime
) -> EmailMessage:
    domain, short = sender.rpartition("@")[2], mail_id[-16:]  # so that lines of the head need no folding
    message = EmailMessage(_POLICY)
    message["From"] = f"{_NAME} <{sender}>"
    message["To"] = to
    message["Subject"] = f"{_NAME}: {subject}"
    message["Date"] = at
    message["Message-ID"] = f"<{int(at.timestamp())}.{short}@{domain}>"
    message["List-Id"] = f"{_NAME} digests <{short}.{urlsplit(page).hostname or domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    message.set_content(text, cte="quoted-printable")
    message.add_alternative(_PAGE.format(_linked(text, links)), subtype="html", cte="quoted-printable")
    return message


def _linked(text: str, links: set[str]) -> str:
    """The text as HTML, in which these addresses are links. No claim holds one: nothing in a claim looks like it."""
    wanted = "|".join(re.escape(escape(link)) for link in sorted(links, key=len, reverse=True))
    return re.sub(wanted, lambda found: f'<a href="{found[0]}">{found[0]}</a>', escape(text))


def _masked(figures: DigestFigures) -> DigestFigures:
    """With masks over credentials: what waits may be older than the check that finds them."""
    find = secret_detector().find
    first = [
        item.model_copy(update={"content": mask(item.content, find(item.content))}) for item in figures.first
    ]
    return replace(figures, first=first)
