"""Claims about real repositories, each examined by itself with the repository beside it: what is stored of the true
ones, and of the false ones.

The rows are `{repo, claim, kind}`, `repo` as `owner/name`, `kind` being `T` for a true claim, `F-passing` for a true
one that its record only mentions, and `F-…` for a false one. The repositories are folders `owner__name`.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.fireweed_gate import Admits
from vouchgate.cli.check import LOCAL, OWNER
from vouchgate.gate.examiner import Examiner
from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.citations.kinds.path import parse_key
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.claims.likeness import Neighbours
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.settings import Settings
from vouchgate.sources.repositories import open_repositories
from vouchgate.sources.setup import open_sources
from vouchgate.wire import ClaimIn

Row = Mapping[str, Any]
_WRITTEN_BY = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")


def run(rows: Sequence[Row], folders: Path, fireweed: Admits | None) -> None:
    """Prints what this gate stores, and what fireweed admits on the text of the records that a claim cites, the
    citation itself left out of the claim."""
    ours: list[bool] = []
    theirs: list[bool] = []
    ordered = sorted(rows, key=lambda row: str(row["repo"]))
    for name in sorted({str(row["repo"]) for row in rows}):
        claims = [str(row["claim"]) for row in ordered if row["repo"] == name]
        folder = folders / name.replace("/", "__")
        ours += _stored(claims, folder)
        if fireweed is not None:
            theirs += [fireweed(_without_citations(claim), _cited_text(claim, folder)) for claim in claims]
    kinds = [str(row["kind"]) for row in ordered]
    _print("stored", kinds, ours)
    if fireweed is not None:
        _print("fireweed", kinds, theirs)


def _print(name: str, kinds: Sequence[str], kept: Sequence[bool]) -> None:
    groups: defaultdict[str, list[bool]] = defaultdict(list)
    for kind, each in zip(kinds, kept, strict=True):
        groups[{"T": "true", "F-passing": "mentioned in passing"}.get(kind, "false")].append(each)
    shares = [
        f"{group} {sum(found)} of {len(found)} ({sum(found) / len(found):.3f})"
        for group, found in groups.items()
    ]
    print(f"  {name}: {', '.join(shares)}")


def _stored(claims: Sequence[str], folder: Path) -> list[bool]:
    """Whether each is stored, with the default policy and nothing remembered."""
    policy = load_policy()
    with _repository(folder) as tree, ExitStack() as opened:
        settings = Settings(repo=(tree,), offline=True)
        sources = opened.enter_context(open_sources(settings, policy, open_repositories(settings)))
        examiner = Examiner(policy, sources)
        opened.callback(examiner.close)
        runner = opened.enter_context(asyncio.Runner())
        opened.callback(lambda: runner.run(sources.stop_reading()))
        sent = [
            ClaimIn(content=claim, memory_type=MemoryType.FACT, source=Source.AI_SYNTHESIS, user_id=OWNER)
            for claim in claims
        ]
        examined = (runner.run(examiner.examine(examiner.build_claim(LOCAL, each))) for each in sent)
        return [each.knowing(dedup=Neighbours()).decide().tier is Tier.STORED for each in examined]


@contextmanager
def _repository(folder: Path) -> Iterator[Path]:
    """The folder as a git repository of its own, all of it in one commit."""
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made) / folder.name
        shutil.copytree(folder, tree)
        for command in (("init", "-q"), ("add", "-A"), (*_WRITTEN_BY, "commit", "-qm", "As it was read.")):
            subprocess.run(("git", *command), cwd=tree, check=True, capture_output=True)
        yield tree


def _cited_text(claim: str, folder: Path) -> str:
    """The texts of the records and files that the claim cites; empty where there are none."""
    found: dict[Path, None] = {}
    for citation in detect_citations(claim):
        path = parse_key(citation.key)
        if path is not None:
            found |= dict.fromkeys(each for each in (folder / path.path,) if each.is_file())
        elif citation.key.startswith("adr:"):
            number = rf"0*{citation.key.removeprefix('adr:')}(?!\d).*"
            found |= dict.fromkeys(
                each for each in sorted(folder.rglob("*.md")) if re.match(number, each.name)
            )
    return "\n\n".join(each.read_text("utf-8") for each in found)


def _without_citations(claim: str) -> str:
    for citation in reversed(detect_citations(claim)):
        claim = claim[: citation.start] + claim[citation.end :]
    return re.sub(r"\(\W*\)|\b(?:per|see|as decided in|according to)\W*(?=[.,;]|$)|^\W+", "", claim).strip()
