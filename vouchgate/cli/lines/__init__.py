"""Commands that answer to JSON lines or documents: they keep nothing."""
