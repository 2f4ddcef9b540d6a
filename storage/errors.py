"""What can go wrong with the database, as far as callers can act on it."""

from __future__ import annotations


class StorageError(Exception):
    """The database cannot be used as asked. The message is a sentence for the person who runs the service."""


class StoreBusy(StorageError):
    """Not now: nothing is known to have been written, and trying again later is the right thing to do."""


class StoreUnknown(StoreBusy):
    """The connection was lost during the commit, so whether it was written could not be found out."""


class SourceErased(StorageError):
    """A record was erased while a claim that cites it was looked at: nothing was written, and looked at again, the
    claim does not find it."""


class RecordUnreadable(StorageError):
    """A kept decision is not there or cannot be understood: trying again will not help. Nothing was written."""


class StoreClosed(StorageError):
    """The store was closed; nothing was written."""


class ReadOnly(StoreBusy):
    """Nothing is written for this owner at the moment, because somebody said so; the message says who is concerned and
    why. Nothing was written."""
