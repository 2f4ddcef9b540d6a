"""What auditors read, and audits of memories that owners hand over."""
