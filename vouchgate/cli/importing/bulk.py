"""`vouchgate audit --dask`: the audit of a file on a cluster, and its report."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from vouchgate.cli.check import LOCAL, OWNER
from vouchgate.cli.importing.run import (
    LINES,
    NOTHING,
    BadRows,
    ImportRequest,
    rendered,
    report_facts,
    report_targets,
    say_audit,
    written,
)
from vouchgate.cli.output import FAILED, Failure, hint
from vouchgate.importing.bulk.cluster import cluster
from vouchgate.importing.bulk.parts import divide
from vouchgate.importing.bulk.run import audit
from vouchgate.importing.bulk.tasks import Plan
from vouchgate.importing.formats import Format
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.settings import Settings
from vouchgate.sources.repositories import work_tree_here

# The settings that say what rows may cite; of an address what stands before the host is left out. Workers get these and
# no other.
_SENT = (
    *("adr_dirs", "ref", "memory_files", "official_paths", "official_corpora"),
    *("jira_url", "jira_projects", "linear_url", "linear_teams"),
)
_USER = re.compile(r"(?<=://)[^/]*@")


def run(asked: ImportRequest, settings: Settings, report: Path | None, where: str) -> int:
    """Writes the report; 1 when rows could not be read. Raises Failure, BulkError and Unreadable."""
    targets, policy = report_targets(report), load_policy(settings.policy)
    if asked.file == "-":
        raise Failure("workers cannot read standard input; give --dask a file")
    with asked.open(()) as opened_here:
        form = opened_here.format
    if form not in (Format.JSONL, Format.PARQUET):
        raise Failure(
            f"--dask reads JSON lines and Parquet, and {asked.file} is {form.value}; leave --dask out"
        )
    path, sent = Path(asked.file).absolute(), settings_sent(settings)
    defaults = replace(asked.defaults, owner=asked.defaults.owner or OWNER)
    certificates = (settings.dask_ca, settings.dask_cert, settings.dask_key)
    with ExitStack() as opened:
        needed = (path, *sent["repo"], *sent["corpora"].values(), *sent["trackers"])
        client = opened.enter_context(cluster(where, certificates, needed))
        lines = opened.enter_context(written(targets[0])) if targets[0].suffix == LINES else None
        bar = opened.enter_context(Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()))
        task = bar.add_task("audit", total=None)
        found, first, bad_count = audit(
            client,
            Plan(policy, LOCAL, defaults, sent),
            divide(str(path), form),
            lines=lines,
            tell=lambda done, of: bar.update(task, completed=done, total=of),
        )
        if not found.rows:
            raise Failure(NOTHING)
    bad = BadRows(hint)
    for row in first:
        bad(row)
    bad.count = bad_count
    facts = report_facts(asked, form, policy, found, bad, offline=True)
    for target in targets if lines is None else ():
        with written(target) as stream:
            stream.write(rendered(target, facts))
    say_audit(facts, targets)
    return FAILED if bad.count else 0


def settings_sent(settings: Settings) -> dict[str, Any]:
    """Those that workers get: what rows may cite, at the places where it lies on the disk. Raises Failure."""
    repos = settings.repo or work_tree_here()
    if not all(isinstance(each, Path) for each in repos):
        raise Failure("workers read no repository over the network: give --repo the folder of a work tree")
    sent = {name: getattr(settings, name) for name in _SENT}
    return {
        **{name: _USER.sub("", value) if isinstance(value, str) else value for name, value in sent.items()},
        "repo": tuple(Path(each).absolute() for each in repos),
        "corpora": {name: folder.absolute() for name, folder in settings.corpora.items()},
        "trackers": tuple(Path(each).absolute() for each in settings.trackers),
    }
