"""Whole documents: their sources read, each claim held against them, and the answer written down."""
