"""How much of a source is read. A program that reads pages loads this, and nothing of what a claim is."""

TEXT_CHARACTERS = 200_000  # of a source's text; what is longer is cut, and `Found.cut` says so
