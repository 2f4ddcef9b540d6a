"""The mail of a digest: what claims say bends neither its headers nor its HTML, and it leads to items only."""

from __future__ import annotations

import re
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.review.test_digest import NOW, PAGE, figures, item
from tests.unit.secrets.credentials import made
from vouchgate.ingest.claims.log import Action
from vouchgate.review.digests.mail import MOST_OWNERS_SHOWN, compose
from vouchgate.review.digests.text import DigestFigures
from vouchgate.storage.outgoing.mail import valid_address
from vouchgate.storage.queue.overview import EventCounts

ID = "mail_" + "1" * 32


def sent(*digests: DigestFigures) -> EmailMessage | None:
    """The mail as it arrives."""
    made = compose(
        digests, mail_id=ID, to="ann@example.org", sender="gate@gate.example.org", page=PAGE, at=NOW
    )
    if made is None:
        return None
    arrived = message_from_bytes(made.as_bytes(), policy=default)
    assert isinstance(arrived, EmailMessage)
    return arrived


def parts(message: EmailMessage | None) -> tuple[str, str]:
    """Its text and its HTML."""
    assert message is not None
    plain, html = message.get_body(("plain",)), message.get_body(("html",))
    assert plain is not None
    assert html is not None
    return (str(plain.get_content()).replace("\r\n", "\n"), str(html.get_content()))


def of_claim(content: str) -> EmailMessage | None:
    return sent(figures(waiting=1, first=[item(content=content)]))


def test_what_a_mail_is_made_of() -> None:
    message = of_claim("The hall is cold")
    assert message is not None
    assert dict(message.items()) | {"Content-Type": ""} == {
        "From": "Vouchgate <gate@gate.example.org>",
        "To": "ann@example.org",
        "Subject": "Vouchgate: 1 claim waits",
        "Date": "Sat, 21 Nov 2026 06:00:00 +0000",
        "Message-ID": f"<{int(NOW.timestamp())}.{ID[-16:]}@gate.example.org>",
        "List-Id": f"Vouchgate digests <{ID[-16:]}.gate.example.org>",
        "Auto-Submitted": "auto-generated",
        "X-Auto-Response-Suppress": "All",
        "MIME-Version": "1.0",
        "Content-Type": "",
    }
    text, html = parts(message)
    link = f"{PAGE}/items/{item().id}"
    assert f"    {link}\n" in text
    assert f'<a href="{link}">{link}</a>' in html
    assert set(re.findall(r'href="([^"]*)"', html)) == {link, PAGE}
    assert not re.search(r"<(img|script|style|link|form|input)|src=|url\(", html)


def test_nothing_to_tell_is_no_mail() -> None:
    assert sent() is None
    assert sent(figures(), figures(happened=EventCounts({Action.SESSION_STARTED: 3}, complete=True))) is None
    happened = sent(figures(happened=EventCounts({Action.CLAIM_STORED: 3}, complete=True)))
    assert happened is not None
    assert happened["Subject"] == "Vouchgate: What happened"


def test_claims_are_text() -> None:
    hostile = (
        "</div><script>alert(1)</script> <a href='https://evil.example/x'>approve</a> &amp; evil.example "
        "\u202egpj.exe\u202c \r\nBcc: all@evil.example"
    )
    message = of_claim(hostile)
    assert message is not None
    assert message["Bcc"] is None
    text, html = parts(message)
    assert "<script" not in html
    assert "https[:]//evil[.]example" in text
    for part in (text, html):
        assert "evil.example" not in part
        assert "\u202e" not in part
    # A claim that names an item of ours is no link to it either.
    _, html = parts(of_claim(f"{PAGE}/items/rev_1"))
    assert "rev_1</a>" not in html
    text, _ = parts(of_claim("Python 3.11 is old. It ended."))
    assert "“Python 3.11 is old. It ended.”" in text


@given(st.text(max_size=300), st.text(max_size=30))
def test_no_text_breaks_a_mail(content: str, owner: str) -> None:
    digest = figures(waiting=1, first=[item(content=content or "x")], owner_id=owner)
    message = sent(digest, figures(waiting=2))
    text, html = parts(message)
    assert text.count(f"{PAGE}/items/") == 1
    assert set(re.findall(r"<a href=\"([^\"]*)\"", html)) <= {PAGE, f"{PAGE}/items/{item().id}"}


def test_credentials_and_crowds_stay_out() -> None:
    secret = "AIza" + made(35)
    assert secret not in "".join(parts(of_claim(f"The key is {secret}, says ops")))
    owners = [figures(owner_id=f"owner-{number}", waiting=number + 1) for number in range(30)]
    text, _ = parts(sent(*owners))
    assert text.count("Clear the queue") == MOST_OWNERS_SHOWN
    assert f"And {30 - MOST_OWNERS_SHOWN} more of your owners" in text
    huge, _ = parts(of_claim("word " * 200_000))
    assert len(huge) < 2_000


@pytest.mark.parametrize(
    ("address", "valid"),
    [
        ("ann@example.org", True),
        ("ann.lee+digest@mail.example.org", True),
        ("ann@localhost", True),
        ("Ann <ann@example.org>", False),
        ("ann@example.org\nBcc: eve@example.org", False),
        ("ann@example.org\n", False),
        ("ann@example.org,eve@example.org", False),
        ('"a b"@example.org', False),
        ("änn@example.org", False),
        ("ann@exämple.org", False),
        ("ann", False),
        ("", False),
        ("a" * 65 + "@example.org", False),
    ],
)
def test_addresses(address: str, valid: bool) -> None:
    assert valid_address(address) is valid
