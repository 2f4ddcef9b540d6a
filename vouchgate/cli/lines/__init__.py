"""Commands that answer with JSON lines, to JSON lines or to documents."""
