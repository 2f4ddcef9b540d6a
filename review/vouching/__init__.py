"""Who may vouch for what, and how many have to."""
