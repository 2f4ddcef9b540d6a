"""Commands that look things up in the world."""
