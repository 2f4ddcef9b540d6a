"""Erasing what came of a claim: what goes (`plan`), the one transaction (`apply`), what is left of it (`tombstones`),
the list beside backups (`listed`), and the free pages (`scrub`). ADR-0051 has every table."""
