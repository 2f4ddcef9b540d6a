"""What may stand as an owner id, a token's name, or any other id in a query."""

from __future__ import annotations

MAX_NAME_CHARACTERS = 200


def valid_owner_id(text: str) -> bool:
    """Whether `text` can name an owner: 1 to 200 printable characters.

    Control characters, bidi and zero-width marks, line breaks and lone surrogates are not printable, so two
    owners that look alike in a list or a log line are not made that way. The empty id is taken: it names
    the service's own log chain.
    """
    return 1 <= len(text) <= MAX_NAME_CHARACTERS and text.isprintable()


def valid_name(text: str) -> bool:
    """Whether `text` can be a token's name, or an id at all; the same rule as for owners.

    A text that fails names nothing, and must not reach a query: PostgreSQL cannot even be asked for a NUL.
    """
    return valid_owner_id(text)
