"""Commands of `vouchgate review` beside those on one item."""
