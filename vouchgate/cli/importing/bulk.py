"""`vouchgate audit --dask`: a file of memories looked through on a cluster."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from vouchgate.cli.check import LOCAL
from vouchgate.cli.importing.run import BadRows, ImportRequest, Looked
from vouchgate.cli.output import Failure, ended_as_by_hand, hint
from vouchgate.importing.bulk.cluster import cluster
from vouchgate.importing.bulk.parts import divide
from vouchgate.importing.bulk.run import audit
from vouchgate.importing.bulk.tasks import Plan
from vouchgate.importing.formats import Format
from vouchgate.ingest.policy import Policy
from vouchgate.settings import Settings
from vouchgate.sources.repositories import work_tree_here

# The settings that say what rows may cite; of an address what stands before the host is left out. Workers get these and
# no other.
_SENT = (
    *("adr_dirs", "ref", "memory_files", "official_paths", "official_corpora"),
    *("jira_url", "jira_projects", "linear_url", "linear_teams"),
)
_USER = re.compile(r"(?<=://)[^/]*@")


@contextmanager
def looking(
    asked: ImportRequest, settings: Settings, policy: Policy, where: str, *, answers: bool
) -> Iterator[Looked]:
    """What was found in a file on the cluster that `where` names. Raises Failure, BulkError and Unreadable."""
    if asked.file == "-":
        raise Failure("workers cannot read standard input; give --dask a file")
    with asked.open(()) as rows:
        form = rows.format
    if form not in (Format.JSONL, Format.PARQUET):
        raise Failure(
            f"--dask reads JSON lines and Parquet, and {asked.file} is {form.value}; leave --dask out"
        )
    path, sent = Path(asked.file).absolute(), settings_sent(settings)
    certificates = (settings.dask_ca, settings.dask_cert, settings.dask_key)
    needed = (path, *sent["repo"], *sent["corpora"].values(), *sent["trackers"])
    plan, parts = Plan(policy, LOCAL, asked.defaults, sent), divide(str(path), form, fields=asked.fields)
    with (
        ended_as_by_hand(),  # workers may have rows on the disk
        cluster(where, certificates, needed) as client,
        Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar,
    ):
        task = bar.add_task("audit", total=None)
        tell = partial(bar.update, task)
        with audit(
            client, plan, parts, lambda done, of: tell(completed=done, total=of), answers=answers
        ) as found:
            bad = BadRows(bar.console.print if sys.stderr.isatty() else hint)
            for row in found[2]:
                bad(row)
            bad.count = found[1]
            yield Looked(form, found[0], bad, found[3])


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
