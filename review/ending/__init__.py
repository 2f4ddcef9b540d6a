"""What ends what is kept: its time, and erasing for good."""
