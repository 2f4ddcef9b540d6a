"""What claims rest on: what users said and tools returned, and what sources say together."""
