"""Reading the file of owner rules that a setting names."""

from __future__ import annotations

from pathlib import Path

from vouchgate.review.vouching.owner_rules import NO_RULES, OwnerRules, OwnerRulesError, parse


def load_rules(path: Path | None) -> OwnerRules:
    """The rules of a file; none without one. Raises OwnerRulesError for one that cannot be read, or with any fault: a
    rule that is left out could let pass what it was to stop."""
    if path is None:
        return NO_RULES
    rules, faults = parse(read_rules(path))
    if faults:
        told = " ".join(f"line {fault.line}: {fault.message}" for fault in faults)
        raise OwnerRulesError(f"owner rules {path}: {told}")
    return rules


def read_rules(path: Path) -> str:
    """The text of a file of rules. Raises OwnerRulesError."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise OwnerRulesError(f"owner rules {path} cannot be read: {error}") from error
