"""What `vouchgate import` does: sends a file of memories through the gate, or writes a report about it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shlex
import signal
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from vouchgate.cli.check import LOCAL, OWNER
from vouchgate.cli.database import open_existing
from vouchgate.cli.importing.progress import ImportProgress
from vouchgate.cli.importing.reports import LINES, check_overwrites, name_of, report_targets, write_report
from vouchgate.cli.output import FAILED, INTERRUPTED, Failure, hint, one_line, say, show_table
from vouchgate.cli.progress import of_the_index
from vouchgate.client import Client, Reviews, VouchgateError
from vouchgate.client.calls import as_json
from vouchgate.documents.beside import work_tree_of
from vouchgate.gate.examiner import Examiner
from vouchgate.importing.audit import Auditor
from vouchgate.importing.batches import Batch, Batches
from vouchgate.importing.feed import ReadOnceSources, examine_all
from vouchgate.importing.findings import Audit
from vouchgate.importing.formats import Format, RowFile
from vouchgate.importing.labels import LabelledRow, short_name
from vouchgate.importing.mapping import UnknownShape
from vouchgate.importing.remote import RemoteImport
from vouchgate.importing.report import JUNK, LOOK, ReportFacts, format_share
from vouchgate.importing.rows import KNOWN, BadRow, Defaults, Fields, Unreadable
from vouchgate.importing.run import Importer, ImportStopped, Tally
from vouchgate.ingest.claims.claim import Claim, Source
from vouchgate.ingest.claims.decision import Outcome
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import Policy
from vouchgate.review.rules import Act, is_allowed
from vouchgate.server.answering import answer_repeat
from vouchgate.server.auth import Authenticator
from vouchgate.server.interpreter import tune_interpreter
from vouchgate.service import Service, open_service
from vouchgate.settings import Settings, plain
from vouchgate.sources.repositories import open_repositories, work_tree_here
from vouchgate.sources.setup import open_sources
from vouchgate.storage.queue.capacity import QueueFull
from vouchgate.wire import MAX_BODY_BYTES

_TOLD = 20  # bad rows that are told one by one; the others are counted


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What the command line says of the file. `form` None: it is recognised by its content."""

    file: str
    form: Format | None
    defaults: Defaults
    limit: int | None
    fields: Fields = KNOWN
    map_file: Path | None = None  # that `fields` come from

    def open(self, repos: Sequence[Path | str]) -> RowFile:
        """The file; of documents, links to files are files of the repository that it lies in, or else of the first that
        is a work tree. Raises Failure."""
        try:
            trees = [each for each in repos if isinstance(each, Path)]
            root = work_tree_of(self.file, trees) or next(iter(trees), None)
            rows = RowFile(self.file, self.form, root, self.fields, tell=lambda said: hint(one_line(said)))
            rows.look_ahead()
            if rows.reports:
                hint(f"Not read, as they are reports of an audit: {', '.join(map(one_line, rows.reports))}")
            return rows
        except UnknownShape as error:
            hint(error.template)
            raise Failure(str(error)) from error
        except Unreadable as error:
            raise Failure(str(error)) from error


class Interrupt:
    """Hears the first ^C and lets what is under way be finished; a second one ends the program as usual."""

    def __init__(self) -> None:
        self.heard = False

    def __call__(self) -> bool:
        """Whether it was heard."""
        return self.heard

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hears it until the end of the block."""
        former = signal.signal(signal.SIGINT, self._hear)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, former)

    def _hear(self, _number: int, _frame: object) -> None:
        self.heard = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(slots=True)
class BadRows:
    """Tells of the first rows that cannot be used, and counts them all."""

    tell: Callable[[str], None]
    count: int = 0
    first: list[BadRow] = field(default_factory=list)

    def __call__(self, row: BadRow) -> None:
        """One more."""
        self.count += 1
        if self.count <= _TOLD:
            self.first.append(row)
            self.tell(one_line(f"{row.place}: {row.message}"))
        elif self.count == _TOLD + 1:
            self.tell("further rows that cannot be read are counted, and not told one by one")


def send(asked: ImportRequest, settings: Settings) -> int:
    """Sends every row; 1 when some could not be sent, 130 when interrupted. Raises Failure."""
    logging.basicConfig(level=logging.ERROR)  # that a source could not be read is in the decision already
    token, interrupt = _token(settings), Interrupt()
    with ExitStack() as opened:
        rows = opened.enter_context(asked.open(settings.repo))
        open_existing(settings).dispose()  # a token is of a database that is there
        with of_the_index() as building:
            service = opened.enter_context(open_service(settings, building))
        runner = opened.enter_context(asyncio.Runner())
        opened.callback(lambda: runner.run(service.sources.stop_reading()))
        principal = runner.run(_authenticated(service, token))
        _check_grant(principal, asked.defaults)
        examiner = Examiner(service.policy, service.sources, publishers=service.gate.own_publishers)
        opened.callback(examiner.close)
        batches = Batches(rows, examiner, principal, asked.defaults, limit=asked.limit, store=service.store)
        progress = opened.enter_context(ImportProgress("import", rows.size))
        importer = Importer(
            service.gate,
            examiner,
            principal,
            tell_bad=BadRows(progress.say),
            report=lambda tally, position: progress(tally.rows, position),
            again=partial(answer_repeat, service, principal),
        )
        stopped: str | None = None
        opened.enter_context(interrupt.listening())
        tune_interpreter()
        try:
            runner.run(importer.run(batches, interrupt))
        except ImportStopped as error:
            stopped = str(error)
    if importer.tally.rows or not (stopped or interrupt.heard):
        _show(importer.tally)
    if stopped is not None:
        raise Failure(stopped)
    if interrupt.heard:
        hint("Interrupted. Run it again with the same token, and it goes on where it stopped.")
        return INTERRUPTED
    return FAILED if importer.tally.bad or importer.tally.full else 0


def send_to(url: str, asked: ImportRequest, settings: Settings, *, after: int) -> int:
    """As `send`, through the service at `url`, without the first rows where `after` says how many. Raises Failure."""
    token, interrupt = _token(settings), Interrupt()
    with ExitStack() as opened:
        try:
            client = opened.enter_context(Client(url, token))
            principal = Principal.model_validate(client.whoami().model_dump())
        except (VouchgateError, ValueError) as error:
            raise Failure(f"--url: {error}") from error
        rows = opened.enter_context(asked.open(settings.repo))
        _check_agent(principal)
        _check_grant(principal, asked.defaults)
        progress = opened.enter_context(ImportProgress("import", rows.size))
        importer = RemoteImport(
            client,
            token,
            asked.defaults,
            BadRows(progress.say),
            lambda tally, position: progress(tally.rows, position),
        )
        stopped: str | None = None
        opened.enter_context(interrupt.listening())
        try:
            importer.run(rows, interrupt, after=after, limit=asked.limit)
        except (ImportStopped, Unreadable) as error:
            stopped = str(error)
    if importer.tally.rows or not (stopped or interrupt.heard):
        _show(importer.tally)
    left = None if asked.limit is None else asked.limit - (importer.done - after)
    if stopped is not None or interrupt.heard:
        hint(f"The first {importer.done:,} rows are done; those behind them were not sent, or not all taken.")
        if left != 0:
            hint(f"Go on with: {_command(url, asked, settings.repo, importer.done, left)}")
    if stopped is not None:
        raise Failure(stopped)
    if interrupt.heard:
        return INTERRUPTED
    return FAILED if importer.tally.bad else 0


def _command(
    url: str, asked: ImportRequest, repos: Sequence[Path | str], after: int, limit: int | None
) -> str:
    """What goes on where an import stopped. Of the repositories, work trees alone say anything of a row here."""
    known = asked.defaults
    said: dict[str, object] = {"--format": asked.form, "--map": asked.map_file, "--owner": known.owner}
    said |= {"--memory-type": known.memory_type, "--source": known.source, "--limit": limit}
    pairs = [
        *said.items(),
        *(("--repo", each) for each in repos if isinstance(each, Path)),
        ("--after", after),
    ]
    options = [word for name, value in pairs if value is not None for word in (name, str(value))]
    return shlex.join(["vouchgate", "import", asked.file, "--url", url, *options])


def _token(settings: Settings, role: Role = Role.AGENT) -> str:
    token = plain(settings.token)
    if token is None:
        raise Failure(f"set VOUCHGATE_TOKEN to a token: vouchgate token create --role {role.value} …")
    return token


async def _authenticated(service: Service, token: str) -> Principal:
    principal = await Authenticator(service.store).principal(f"Bearer {token}")
    if principal is None:
        where = make_url(service.settings.database_url).render_as_string(hide_password=True)
        raise Failure(f"VOUCHGATE_TOKEN is no token of the database {where}, or was revoked, or has expired")
    _check_agent(principal)
    return principal


def _reviews(url: str, settings: Settings) -> Reviews:
    """A client of the service there, for a reviewer's token. Raises Failure."""
    try:
        reviews = Reviews(url, _token(settings, Role.REVIEWER))
        reviews.list(limit=1)
    except (VouchgateError, ValueError) as error:
        raise Failure(f"--url: {error}") from error
    return reviews


def handed_row(told: LabelledRow, claim: Claim) -> dict[str, Any]:
    """A row as the service takes it: its line of the report, and what the claim has beside its text."""
    beside = claim.model_dump(mode="json", include={"memory_type", "validity_horizon", "metadata"})
    cited = [{"type": each.type, "value": each.value, "quote": each.quote} for each in claim.citations]
    row = told.as_json()
    names: dict[str, Any] = {name: short_name(row[name]) for name in ("row", "other_row") if name in row}
    return {**row, **names, **beside, "citations": cited}


def _hand_over(reviews: Reviews, name: str, rows: Sequence[dict[str, Any]], owner: str | None) -> str:
    """Hands rows over, behind those that an earlier run did; the id of the audit. Raises Failure."""
    digest = hashlib.sha256(b"".join(map(as_json, rows))).hexdigest()
    about = {"name": name, "digest": digest, "total": len(rows), "user_id": owner}
    after = -1
    while after < len(rows):
        after, some = max(after, 0), rows[max(after, 0) :][:100]
        while len(some) > 1 and len(as_json(some)) > MAX_BODY_BYTES * 3 // 4:
            some = some[: len(some) // 2]
        try:
            found = reviews.hand_over({**about, "after": after, "rows": some})
        except VouchgateError as error:
            raise Failure(f"--url: {error}; run it again, and it goes on behind row {after:,}") from error
        after = found.taken
    return found.id


def _check_agent(principal: Principal) -> None:
    if not is_allowed(principal, Act.SUBMIT):
        raise Failure(
            f"VOUCHGATE_TOKEN is a token of a {principal.role.value}; claims are an agent's to send"
        )


def _check_grant(principal: Principal, defaults: Defaults) -> None:
    """A source that the token may not assert would count as AI synthesis for every row: better said at once."""
    if defaults.source is not Source.AI_SYNTHESIS and defaults.source not in principal.sources:
        raise Failure(
            f"this token may not assert the source {defaults.source.value}; make one that may with "
            f"vouchgate token create --role agent --source {defaults.source.value} …"
        )
    if defaults.owner is not None and not principal.may_act_for(defaults.owner):
        raise Failure("this token may not act for the owner that --owner names")


def _show(tally: Tally) -> None:
    """The closing table, by what became of the rows and why."""
    order = list(Outcome)
    decided = sorted(tally.decided.items(), key=lambda item: (order.index(item[0][0]), -item[1], item[0][1]))
    rows = [(outcome.value, f"{count:,}", reason) for (outcome, reason), count in decided]
    if tally.before:
        rows.append(("done before", f"{tally.before:,}", "Decided by an earlier run"))
    if tally.full:
        rows.append(("not sent", f"{tally.full.total():,}", "The review queue is full"))
    if tally.bad:
        rows.append(("bad", f"{tally.bad:,}", "Could not be read as a claim"))
    if rows:
        show_table(("outcome", "rows", "why"), rows, whole=2)
    else:
        say("There is no row in this file.")
    if tally.limit is not None:
        hint(_how_to_go_on(tally, tally.limit))


def _how_to_go_on(tally: Tally, met: QueueFull) -> str:
    whose = "The whole review queue" if met.which.in_all else f"The review queue of {_owners(tally.full)}"
    return (
        f"{whose} has no place left for imports (the limit is {met.limit:,}), so {tally.full.total():,} rows were not "
        f"sent. Clear it, or raise [queue] {met.which.value} in the policy, and run the import again: it sends these "
        "rows only."
    )


def _owners(full: Mapping[str, int]) -> str:
    names = [one_line(name) for name in list(full)[:3]]
    more = len(full) - len(names)
    return ", ".join(names) + (f" and {more:,} more owners" if more else "")


AuditedClaim = tuple[LabelledRow, Claim]


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found in a file. `unread` says why the rest of it could not be read."""

    form: Format
    found: Audit
    bad: BadRows
    lines: Iterable[str] = ()  # of JSON, for each row with its label, where they are wanted
    unread: str | None = None
    rows: Sequence[AuditedClaim] = ()  # what `lines` are of, unless a cluster looked


def audit(
    asked: ImportRequest,
    settings: Settings,
    report: Path | None,
    dask: str | None = None,
    url: str | None = None,
) -> int:
    """Writes the report, `dask` being the cluster to look with, and hands it over to the service at `url`; 1 when rows
    could not be read, 130 when interrupted. Raises Failure."""
    logging.basicConfig(level=logging.ERROR)
    targets, policy, interrupt = report_targets(report), load_policy(settings.policy), Interrupt()
    check_overwrites(targets, asked.file, (asked.map_file, settings.policy))
    owner = asked.defaults.owner
    asked = replace(asked, defaults=replace(asked.defaults, owner=owner or OWNER))
    answers = targets[0].suffix == LINES or url is not None
    with ExitStack() as opened:
        reviews = None if url is None else opened.enter_context(_reviews(url, settings))
        if dask is None:
            looked = _look_through(asked, settings, policy, interrupt, answers=answers)
        else:
            from vouchgate.cli.importing import bulk  # noqa: PLC0415  (of an extra)

            looked = opened.enter_context(bulk.looking(asked, settings, policy, dask, answers=answers))
        found, bad, unread = looked.found, looked.bad, looked.unread
        if not found.rows and unread is None and not interrupt.heard:
            raise Failure("no row of this file could be read as a memory, so there is nothing to report")
        facts = ReportFacts(
            file="standard input" if asked.file == "-" else name_of(asked.file),
            form=looked.form.value,
            at=datetime.now(UTC),
            audit=found,
            bad=tuple(bad.first),
            bad_count=bad.count,
            offline=settings.offline,
            stopped=interrupt.heard or unread is not None or found.rows + bad.count == asked.limit,
            threshold=policy.duplicate_threshold,
            policy_digest=policy.digest,
        )
        for target in targets:
            write_report(target, facts, looked.lines)
        _say_audit(facts, targets)
        if reviews is not None:
            own = [handed_row(*row) for row in looked.rows if row[1].owner_id == asked.defaults.owner]
            if len(own) < len(looked.rows):
                hint(f"{len(looked.rows) - len(own):,} rows are of other owners, and were not handed over.")
            say(f"Clear it: {url}/review/memory-audits/{_hand_over(reviews, facts.file, own, owner)}")
    if unread is not None:
        raise Failure(unread)
    if interrupt.heard:
        hint("Interrupted: the report is about the rows before.")
        return INTERRUPTED
    return FAILED if bad.count else 0


def _look_through(
    asked: ImportRequest, settings: Settings, policy: Policy, interrupt: Interrupt, *, answers: bool
) -> Looked:
    repos = settings.repo or work_tree_here()
    git, auditor = open_repositories(settings, repos), Auditor(policy)
    with ExitStack() as opened:
        rows = opened.enter_context(asked.open(repos))
        sources = opened.enter_context(open_sources(settings, policy, git))
        once = ReadOnceSources(sources)
        examiner = Examiner(policy, once)
        opened.callback(examiner.close)
        batches = Batches(rows, examiner, LOCAL, asked.defaults, limit=asked.limit)
        runner = opened.enter_context(asyncio.Runner())
        opened.callback(lambda: runner.run(sources.stop_reading()))
        opened.callback(lambda: runner.run(once.stop_reading()))
        progress = opened.enter_context(ImportProgress("audit", rows.size))
        bad = BadRows(progress.say)
        opened.enter_context(interrupt.listening())
        tune_interpreter()
        lines: list[AuditedClaim] | None = [] if answers else None
        looking = _AuditRun(examiner, auditor, bad, progress, lines)
        unread = runner.run(looking.through(batches, interrupt))
    return Looked(
        rows.format, auditor.result(), bad, (told.as_line() for told, _ in lines or ()), unread, lines or ()
    )


@dataclass(frozen=True, slots=True)
class _AuditRun:
    """Goes through a file without sending anything."""

    examiner: Examiner
    auditor: Auditor
    bad: BadRows
    progress: ImportProgress
    lines: list[AuditedClaim] | None  # where they are wanted

    async def through(self, batches: AsyncIterable[Batch], stopped: Callable[[], bool]) -> str | None:
        """Shows every row to the auditor, in order; ends when `stopped` says so. Why the rest of the file cannot be
        read, if it cannot."""
        done = 0
        async for batch in batches:
            looked = await examine_all(self.examiner, batch.ready)
            refused = [examined for examined in looked if isinstance(examined, BadRow)]
            for bad in sorted([*batch.bad, *refused], key=lambda row: batch.order[row.place]):
                self.bad(bad)
            for row, examined in zip(batch.ready, looked, strict=True):
                if not isinstance(examined, BadRow):
                    told = self.auditor.observe(row, examined)
                    if self.lines is not None:
                        self.lines.append((told, examined.claim))
            done += batch.rows
            self.progress(done, batch.position)
            if batch.error is not None:
                return batch.error
            if stopped():
                break
        return None


def _say_audit(facts: ReportFacts, targets: Iterable[Path]) -> None:
    found = facts.audit
    say(f"{format_share(found.junk, found.rows)} junk: {found.junk:,} of {found.rows:,} memories.")
    rows = []
    for mark, kinds in (("", JUNK), ("no junk: ", LOOK)):
        for kind in kinds:
            count = found.counts[kind.flag]
            rows.append((f"{count:,}", format_share(count, found.rows), f"{mark}{kind.name}: {kind.means}"))
    show_table(("rows", "share", "what"), rows, whole=2)
    if facts.bad_count:
        say(
            "1 row could not be read."
            if facts.bad_count == 1
            else f"{facts.bad_count:,} rows could not be read."
        )
    for target in targets:
        say(f"Report: {target}")
