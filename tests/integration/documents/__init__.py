"""Documents with what they cite, read for real."""
