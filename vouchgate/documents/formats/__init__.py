"""Ways to write a report down, one file each."""
