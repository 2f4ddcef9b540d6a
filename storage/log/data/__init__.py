"""Whether what lies in the tables is what the log committed to; see ADR-0047 for which column by which entry."""
