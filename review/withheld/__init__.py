"""What an agent is not told although it is kept."""
