"""Who does what, to what, when and where: what belongs together in a statement, and in a place of a source."""
