"""The commands for who may call, and who is behind that."""
