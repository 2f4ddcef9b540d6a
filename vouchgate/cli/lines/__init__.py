"""Commands that answer JSON lines with JSON lines, and read nothing else."""
