"""The gate before the files that coding agents keep memory in: a hook that a harness runs before each tool call."""
