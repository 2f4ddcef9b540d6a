"""The files that an audit writes: where they go, and that none of them is one that it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from vouchgate.cli.output import Failure
from vouchgate.importing.documents import split_reports
from vouchgate.importing.report import ReportFacts, render_html, render_markdown

REPORT_NAME = "vouchgate-audit"
LINES = ".jsonl"  # a report of a line for each row


def name_of(file: str) -> str:
    """What a file or folder is called, however it was given."""
    name = Path(file).name
    return name if name not in ("", "..") else Path(file).resolve().name or file


def report_targets(report: Path | None) -> list[Path]:
    """The files to write, whose folder is there. Raises Failure: an hour of looking things up must not end so."""
    if report is None:
        report = Path()
    if report.suffix in (".html", ".md", LINES) and not report.is_dir():
        folder, targets = report.parent, [report]
    elif report.suffix and not report.is_dir():
        raise Failure(f"--report: {report} is neither a folder nor a file that ends in .html, .md or .jsonl")
    else:
        folder, targets = report, [report / f"{REPORT_NAME}.{kind}" for kind in ("md", "html")]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"--report: {folder} cannot be made: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise Failure(f"--report: {folder} cannot be written to")
    return targets


def check_overwrites(targets: Sequence[Path], file: str, others: Iterable[Path | None]) -> None:
    """Raises Failure when a report would be written over what is read: the memory itself, or a file beside it."""
    read: list[Path | int] = [each for each in others if each is not None]
    there = [(target, found) for target in targets if (found := _stat(target)) is not None]
    if there and file == "-":
        read.append(0)
    elif there:
        read += split_reports(Path(file))[0] if Path(file).is_dir() else [Path(file)]
    stats = [found for each in read if (found := _stat(each)) is not None]
    for target, found in there:
        if any(os.path.samestat(found, each) for each in stats):
            raise Failure(f"--report: {target} is read as well, and would be written over; name another file")


def _stat(file: Path | int) -> os.stat_result | None:
    """What is known of a file, or of one that is open under this number; None when it is not there."""
    try:
        return os.stat(file)  # noqa: PTH116  (a number is no path)
    except OSError:
        return None


def write_report(target: Path, facts: ReportFacts, lines: Iterable[str]) -> None:
    """Whole or not at all; `lines` are those of a report of lines. Raises Failure."""
    partly = target.with_name(f".{target.name}.part")
    try:
        with partly.open("w", encoding="utf-8", errors="replace") as stream:
            stream.writelines(_rendered(target, facts, lines))
        partly.replace(target)
    except OSError as error:
        raise Failure(f"{target} cannot be written: {error.strerror}") from error


def _rendered(target: Path, facts: ReportFacts, lines: Iterable[str]) -> Iterable[str]:
    if target.suffix == LINES:
        return (line + "\n" for line in lines)
    return [render_html(facts) if target.suffix == ".html" else render_markdown(facts)]
