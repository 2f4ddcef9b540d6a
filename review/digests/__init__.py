"""The digest of an owner's queue: its figures, its text, and the mail it goes in."""
