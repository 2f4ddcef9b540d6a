"""Memories that are there already: read from what other stores write, sent through the gate, or looked through."""
