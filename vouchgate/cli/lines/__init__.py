"""Commands that answer JSON lines with JSON lines."""
