"""What the client raises. A verdict is never one of these: a claim that is blocked or queued is an answer.

No message holds the token, the text of a claim, or more of an answer than the service's own sentence.
"""

from __future__ import annotations


class VouchgateError(Exception):
    """Base of what the client raises. Nothing may be taken as stored because of it.

    `idempotency_key` is the key that the write was sent with, None for a read. Sending the same claim with the same
    key again is safe whatever became of the first one: it is decided once, and the repeat gets the same answer.
    """

    idempotency_key: str | None = None


class CannotOpen(VouchgateError):
    """A gate inside this program could not be opened: a setting, the policy, the database or a repository cannot be
    used. The message says which, and what to do."""


class GateClosed(VouchgateError, RuntimeError):
    """The client was closed, or the gate inside this program takes nothing more: it was closed, the program's main
    thread has ended, or this process was forked from the one it is in. It was not sent."""


class Unsendable(VouchgateError, ValueError):
    """It was not sent, because it cannot be: no JSON can hold it, or a header cannot."""


class Unreachable(VouchgateError):
    """No answer came, after every try: the service is down, or the way to it is. What was sent may have been kept."""


class OddAnswer(VouchgateError):
    """An answer came, and not one that this client knows: a redirect, no JSON, or another shape. The address may be
    that of something else, or the service newer than this client. What was sent may have been kept.

    `status` is the HTTP status, None where there was none to read.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ApiError(VouchgateError):
    """The service refused, with a problem document. Nothing was kept, unless `detail` says otherwise.

    `code` is a stable word to act on, `detail` a sentence for a human, `retry_after` the seconds after which the
    service asks to come back, when it does; `next_step` says what an agent does now, empty where the service does not.
    """

    def __init__(
        self, status: int, code: str, detail: str, *, retry_after: float | None = None, next_step: str = ""
    ) -> None:
        super().__init__(status, code, detail)
        self.next_step = next_step
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.status} {self.code}: {self.detail}"


class QueueFull(ApiError):
    """The review queue is at its limit. It is not sent again by itself: an owner has to clear the queue first."""


class Halted(ApiError):
    """Nothing is taken at the moment: the service, the owner or this agent was stopped (`code` is `stopped`), or is
    read-only (`read_only`). It is not sent again by itself: somebody switched this, and somebody has to switch it
    back."""


class DeadLetter(Exception):
    """Raised by what applies a delivery: it will never work, so that it is not tried again, and later deliveries go on.
    The message is shown to the owner."""
