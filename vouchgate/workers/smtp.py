"""One mail to one address over SMTP, with the standard library. It blocks: call it in a thread.

Certificates are checked, and the name in them. Nothing that a server answers to a password is passed on.
"""

from __future__ import annotations

import ipaddress
import smtplib
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from enum import Enum
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

from vouchgate.ingest.net.client import public_authorities

STEP_SECONDS = 20.0  # for each answer of the server; there are some eight
_MOST_REPLY = 200  # characters of what a server says
_EXAMPLE = "must be like smtp://user@mail.example.org:587 or smtps://mail.example.org; ?starttls=no for a relay without"
# smtplib's own are kinds of OSError.
_REASONS = (
    (smtplib.SMTPNotSupportedError, "the server does not offer what is needed (STARTTLS, or signing in)"),
    (smtplib.SMTPServerDisconnected, "the server ended the connection"),
    (ssl.SSLError, "TLS failed"),
    (TimeoutError, f"no answer within {STEP_SECONDS:g} seconds"),
)


class Tls(Enum):
    """How the connection is encrypted."""

    FROM_THE_START = "smtps"
    STARTTLS = "starttls"  # or nothing is sent
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail is handed in, and as whom."""

    host: str
    port: int
    tls: Tls
    user: str | None = None
    password: str | None = field(default=None, repr=False)


class NotTaken(Exception):
    """The server did not take the mail; the message says why, for the operator. `refused`: it will not have this
    address. `unsure`: the text was handed over and no answer came, so the mail may arrive."""

    def __init__(self, message: str, *, refused: bool = False, unsure: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        self.unsure = unsure


def parse_server(url: str, password: str | None = None) -> MailServer:
    """The server that a URL names. STARTTLS is asked for everywhere but on this machine, unless `?starttls=` says
    otherwise. Raises ValueError, in whose message nothing of the URL is."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
        options = parse_qs(parts.query, strict_parsing=True) if parts.query else {}
    except ValueError:
        raise ValueError(_EXAMPLE) from None
    wanted = options.pop("starttls", [None])[-1]
    if not host or parts.scheme not in ("smtp", "smtps") or parts.path not in ("", "/") or options:
        raise ValueError(_EXAMPLE)
    if parts.fragment or wanted not in (None, "yes", "no") or (parts.scheme == "smtps" and wanted):
        raise ValueError(_EXAMPLE)
    local = _is_local(host)
    tls = Tls.FROM_THE_START
    if parts.scheme == "smtp":
        tls = Tls.STARTTLS if wanted == "yes" or (wanted is None and not local) else Tls.NONE
    user = None if parts.username is None else unquote(parts.username)
    secret = password if parts.password is None else unquote(parts.password)
    if (user is None) != (secret is None):
        raise ValueError("a user name and a password go together")
    if secret is not None and tls is Tls.NONE and not local:
        raise ValueError("a password is sent over TLS only")
    usual = {Tls.FROM_THE_START: 465, Tls.STARTTLS: 587, Tls.NONE: 25}
    return MailServer(host, port or usual[tls], tls, user, secret)


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Handover:
    """A connection that has got as far as the text: `with Handover(…) as open: open.send(message)`. Entering and
    sending raise NotTaken."""

    def __init__(self, server: MailServer, sender: str, to: str, tls: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._sender = sender
        self._to = to
        self._tls = tls
        self._smtp: smtplib.SMTP | None = None

    def __enter__(self) -> Self:
        try:
            self._smtp = smtp = self._connect()
            self._sign_in(smtp)
            _expect(smtp.mail(self._sender), "the sender")
            code, reply = smtp.rcpt(self._to)
            if code not in (250, 251):
                raise NotTaken(f"the address: {_said(code, reply)}", refused=code >= 500)
        except BaseException as error:
            self.close()
            raise _not_taken(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection, however it is."""
        if self._smtp is not None:
            with suppress(smtplib.SMTPException, OSError, ValueError):
                self._smtp.quit()
            self._smtp.close()

    def send(self, message: EmailMessage) -> None:
        """Hands the text over, once."""
        if self._smtp is None:
            raise RuntimeError("send before the connection is open")
        try:
            code, reply = self._smtp.data(message.as_bytes())
        except smtplib.SMTPDataError as error:  # before the text: the server does not want any
            raise _not_taken(error) from error
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise NotTaken(
                f"no answer to the text, so it may arrive: {_reason(error)}", unsure=True
            ) from error
        _expect((code, reply), "the text")

    def _connect(self) -> smtplib.SMTP:
        server, name = self._server, self._sender.rpartition("@")[2]
        if server.tls is Tls.FROM_THE_START:
            tls = self._authorities()
            return smtplib.SMTP_SSL(server.host, server.port, name, timeout=STEP_SECONDS, context=tls)
        smtp = smtplib.SMTP(server.host, server.port, name, timeout=STEP_SECONDS)
        self._smtp = smtp
        if server.tls is Tls.STARTTLS:
            _expect(smtp.starttls(context=self._authorities()), "STARTTLS")
        return smtp

    def _authorities(self) -> ssl.SSLContext:
        return self._tls or public_authorities()

    def _sign_in(self, smtp: smtplib.SMTP) -> None:
        smtp.ehlo_or_helo_if_needed()
        user, password = self._server.user, self._server.password
        if user is None or password is None:
            return
        try:
            smtp.login(user, password)
        except smtplib.SMTPAuthenticationError as error:
            raise NotTaken(f"the user name and password were not accepted ({error.smtp_code})") from None
        except UnicodeError:
            raise NotTaken("the user name or password is not ASCII, which SMTP needs") from None


def _expect(answer: tuple[int, bytes], what: str) -> None:
    if not 200 <= answer[0] < 300:
        raise NotTaken(f"{what}: {_said(*answer)}")


def _not_taken(error: BaseException) -> BaseException:
    """What ended a conversation, as NotTaken where it is a matter of the server or the way to it."""
    if isinstance(error, smtplib.SMTPException | OSError | ValueError):
        return NotTaken(_reason(error))
    return error


def _reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return _said(error.smtp_code, error.smtp_error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, OSError) and (known := [why for kind, why in _REASONS if isinstance(error, kind)]):
        return known[0]
    return (error.strerror if isinstance(error, OSError) else None) or "the connection failed"


def _said(code: int, reply: bytes | str) -> str:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    shown = "".join(each if each.isprintable() else " " for each in text)
    return f"{code} {' '.join(shown.split())[:_MOST_REPLY]}"
