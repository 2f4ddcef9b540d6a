"""A real SMTP server for tests of mail, on a port of its own."""

from __future__ import annotations

import asyncio
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

TAKEN = "250 Message accepted"


@dataclass
class Post:
    """What came, as the server knows it. `rcpt` answers recipients, `data` texts; a `data` that gives None ends the
    connection without an answer."""

    port: int = 0
    came: list[Envelope] = field(default_factory=list)
    signed_in: list[str] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))  # once for each text
    rcpt: Callable[[str], str] = lambda address: "250 OK"
    data: Callable[[], str | None] = lambda: TAKEN

    def messages(self) -> list[EmailMessage]:
        """Every text that was handed over, in order."""
        found = [message_from_bytes(each.original_content or b"", policy=default) for each in self.came]
        return [each for each in found if isinstance(each, EmailMessage)]

    def text(self, number: int = -1) -> str:
        """The plain part of one of them."""
        part = self.messages()[number].get_body(("plain",))
        assert part is not None
        return str(part.get_content()).replace("\r\n", "\n")

    async def handle_RCPT(  # noqa: N802  (the library's name)
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        answer = self.rcpt(address)
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        self.came.append(envelope)
        self.arrived.release()
        assert server.transport is not None
        self.encrypted.append(server.transport.get_extra_info("ssl_object") is not None)
        answer = self.data()
        if answer is None:
            server.transport.close()
            return "421 gone"
        return answer


@contextmanager
def post_office(
    tls: ssl.SSLContext | None = None, password: str | None = None, from_the_start: bool = False
) -> Iterator[Post]:
    """A server that takes everything in. `tls`: STARTTLS comes first, or with `from_the_start` TLS does; with a
    `password`, so does signing in as anybody."""
    post, loop = Post(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)

    def authenticate(server: SMTP, session: Session, envelope: Envelope, how: str, given: Any) -> AuthResult:
        assert isinstance(given, LoginPassword)
        post.signed_in.append(given.login.decode())
        return AuthResult(success=given.password == (password or "").encode(), handled=False)

    def protocol() -> SMTP:
        starttls = None if from_the_start else tls
        with warnings.catch_warnings():  # about passwords without STARTTLS
            warnings.simplefilter("ignore")
            return made(starttls)

    def made(starttls: ssl.SSLContext | None) -> SMTP:
        return SMTP(
            post,
            hostname="mail.example.org",
            loop=loop,
            tls_context=starttls,
            require_starttls=starttls is not None,
            authenticator=authenticate if password else None,
            auth_required=password is not None,
            auth_require_tls=starttls is not None,
        )

    async def listen() -> asyncio.Server:
        return await loop.create_server(protocol, "127.0.0.1", 0, ssl=tls if from_the_start else None)

    async def close() -> None:
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    thread.start()
    server = asyncio.run_coroutine_threadsafe(listen(), loop).result(60)
    post.port = server.sockets[0].getsockname()[1]
    try:
        yield post
    finally:
        asyncio.run_coroutine_threadsafe(close(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
